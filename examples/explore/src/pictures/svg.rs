//! Message charts as SVG. Lanes and columns are as wide as their texts, which have a fixed-width font; long texts are broken.

use super::chart::{Arrow, Chart, Row};
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;
use warpset_support::escaping;

/// Twice the width of a character in pixels: 0.625 of the font's size. The widest common fixed-width fonts have 0.602.
const TWO_CHARACTERS: usize = 15;

/// Height of a line in pixels, and how far its base line is below its top.
const LINE: usize = 16;
const BASE: usize = 12;

/// Space around texts and between parts.
const GAP: usize = 8;

/// Characters of a line in a lane, in a label, and in the column of statements.
const LANE_CHARACTERS: usize = 32;
const LABEL_CHARACTERS: usize = 48;
const STATEMENT_CHARACTERS: usize = 90;

/// Characters of a line above and below the chart, at least.
const TITLE_CHARACTERS: usize = 80;

const BLUE: &str = "#1f4e79";
const GREY: &str = "#555";

/// Lines of text.
#[derive(Default)]
struct Block(Vec<String>);

impl Block {
    /// Breaks a text into lines, at blanks where possible.
    fn new(text: &str, characters: usize) -> Self {
        let text = escaping::line(text);
        let (mut lines, mut line) = (Vec::new(), String::new());
        for word in text.split_whitespace() {
            if !line.is_empty() && line.width() + 1 + word.width() > characters {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            let mut letter = [0; 4];
            for character in word.chars() {
                let character = &*character.encode_utf8(&mut letter);
                if line.width() + character.width() > characters {
                    lines.push(std::mem::take(&mut line));
                }
                line.push_str(character);
            }
        }
        lines.extend(Some(line).filter(|line| !line.is_empty()));
        Self(lines)
    }

    fn width(&self) -> usize {
        self.0.iter().map(|line| width(line)).max().unwrap_or(0)
    }

    fn height(&self) -> usize {
        LINE * self.0.len()
    }
}

fn width(text: &str) -> usize {
    (text.width() * TWO_CHARACTERS).div_ceil(2)
}

/// A row with its texts in lines. From its top: the label with its arrow, messages received, moves, messages sent.
struct Laid {
    label: Block,
    /// Leftmost and rightmost lane that moves.
    ends: Option<(usize, usize)>,
    received: Option<(usize, Block)>,
    moves: Vec<(usize, Block)>,
    sent: Option<(usize, Block)>,
    /// Beside the lanes, with colours.
    beside: Vec<(Block, &'static str)>,
}

impl Laid {
    fn new(chart: &Chart, number: usize, row: &Row) -> Self {
        let of_lanes = |lanes: &mut dyn Iterator<Item = usize>| {
            lanes.fold(None, |ends: Option<(usize, usize)>, lane| {
                Some(ends.map_or((lane, lane), |(first, last)| (first.min(lane), last.max(lane))))
            })
        };
        let ends = of_lanes(&mut row.moves.iter().map(|(lane, _)| *lane));
        let mut beside = Vec::new();
        let mut label = Block::default();
        match (&row.label, ends) {
            (Some(text), Some(_)) => label = Block::new(text, LABEL_CHARACTERS),
            (Some(text), None) => beside.push((Block::new(text, STATEMENT_CHARACTERS), BLUE)),
            (None, _) => {}
        }
        beside.extend(row.statements.iter().map(|text| (Block::new(text, STATEMENT_CHARACTERS), "black")));
        let of_states = [&row.changes, &row.state].into_iter().filter(|text| !text.is_empty());
        beside.extend(of_states.map(|text| (Block::new(text, STATEMENT_CHARACTERS), GREY)));
        // A transition sends on one channel or receives from one.
        let messages = |place: &dyn Fn(&Arrow) -> Option<(usize, usize)>, mark: &dyn Fn(&Arrow) -> String| {
            let arrow = chart.arrows.iter().find(|arrow| place(arrow).is_some_and(|(_, row)| row == number))?;
            Some((place(arrow)?.0, Block::new(&mark(arrow), LANE_CHARACTERS)))
        };
        let fate = |arrow: &Arrow| if arrow.received.is_some() { String::new() } else { format!(" ({})", arrow.fate()) };
        let received = messages(&|arrow| arrow.received, &|arrow| format!("receives {}", arrow.message));
        let sent = messages(&|arrow| Some(arrow.sent), &|arrow| format!("sends {}{}", arrow.message, fate(arrow)));
        let moves = row.moves.iter().map(|(lane, text)| (*lane, Block::new(text, LANE_CHARACTERS))).collect();
        Self { label, ends, received, moves, sent, beside }
    }

    /// Heights of the label with its arrow, of messages received, of moves and of messages sent.
    fn heights(&self) -> [usize; 4] {
        let of = |block: &Block| if block.0.is_empty() { 0 } else { block.height() + GAP };
        let label = if self.label.0.is_empty() { 0 } else { self.label.height() + 2 * GAP };
        let moves = self.moves.iter().map(|(_, block)| of(block)).max().unwrap_or(0);
        let message = |message: &Option<(usize, Block)>| message.as_ref().map_or(0, |(_, block)| of(block) + GAP / 2);
        [label, message(&self.received), moves, message(&self.sent)]
    }

    fn height(&self) -> usize {
        let beside: usize = self.beside.iter().map(|(block, _)| block.height()).sum();
        self.heights().iter().sum::<usize>().max(beside) + 2 * GAP
    }

    /// Texts that are centred in one lane.
    fn in_lanes(&self) -> impl Iterator<Item = (usize, &Block)> {
        let all = self.moves.iter().chain(&self.received).chain(&self.sent).map(|(lane, block)| (*lane, block));
        all.chain(self.ends.filter(|(first, last)| first == last).map(|(lane, _)| (lane, &self.label)))
    }
}

/// Centres of the lanes, and where the column beside them begins.
fn places(names: &[Block], rows: &[Laid], left: usize) -> (Vec<usize>, usize) {
    let mut halves: Vec<usize> = names.iter().map(|name| name.width() / 2 + 2 * GAP).collect();
    for (lane, block) in rows.iter().flat_map(Laid::in_lanes) {
        halves[lane] = halves[lane].max(block.width() / 2 + 2 * GAP);
    }
    let (mut centres, mut end) = (Vec::<usize>::new(), left);
    for (lane, half) in halves.iter().enumerate() {
        let mut centre = end + half;
        for row in rows {
            if let Some((first, _)) = row.ends.filter(|(first, last)| *last == lane && first < last) {
                centre = centre.max(centres[first] + row.label.width() + 4 * GAP);
            }
        }
        centres.push(centre);
        end = centre + half;
    }
    (centres, end + GAP)
}

/// The parts of a drawing, back to front.
#[derive(Default)]
struct Drawing {
    lines: String,
    texts: String,
}

impl Drawing {
    /// Writes a block; `x` is its left end, its middle or its right end.
    fn text(&mut self, x: usize, top: usize, anchor: &str, colour: &str, block: &Block) {
        for (number, line) in block.0.iter().enumerate() {
            // Letters beyond ASCII may come from another font, of another width.
            let fit = if line.is_ascii() {
                String::new()
            } else {
                format!(" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"", width(line))
            };
            writeln!(
                self.texts,
                "<text x=\"{x}\" y=\"{}\" text-anchor=\"{anchor}\" fill=\"{colour}\"{fit}>{}</text>",
                top + LINE * number + BASE,
                escaping::xml(line)
            )
            .expect("a string can be written to");
        }
    }

    /// Writes a block in the middle of a box.
    fn boxed(&mut self, x: usize, top: usize, [fill, stroke, colour]: [&str; 3], block: &Block) {
        let (wide, high) = (block.width() + GAP, block.height() + GAP / 2);
        writeln!(
            self.texts,
            "<rect x=\"{}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\" rx=\"4\" fill=\"{fill}\" stroke=\"{stroke}\"/>",
            x - wide / 2
        )
        .expect("a string can be written to");
        self.text(x, top + GAP / 4, "middle", colour, block);
    }

    fn line(&mut self, [x1, y1, x2, y2]: [usize; 4], more: &str) {
        writeln!(self.lines, "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" {more}/>")
            .expect("a string can be written to");
    }
}

const ARROW: &str = "stroke=\"#1f4e79\" stroke-width=\"1.5\" class=\"message\" marker-end=\"url(#head)\"";

impl Chart {
    /// The chart as SVG.
    pub fn svg(&self) -> String {
        let rows: Vec<Laid> = self.rows.iter().enumerate().map(|(number, row)| Laid::new(self, number, row)).collect();
        let names: Vec<Block> = self.lanes.iter().map(|name| Block::new(name, LANE_CHARACTERS)).collect();
        let numbers = 2 * GAP + width(&rows.len().to_string());
        let (centres, beside) = places(&names, &rows, numbers + GAP);
        let widest = rows.iter().flat_map(|row| &row.beside).map(|(block, _)| block.width()).max().unwrap_or(0);
        let total = (beside + widest + 2 * GAP).max(TITLE_CHARACTERS * TWO_CHARACTERS / 2 + 4 * GAP);
        let title = |text: &str| Block::new(text, (total - 4 * GAP) * 2 / TWO_CHARACTERS);
        let initial = [title(&format!("model {}", self.model)), title(&format!("initial state: {}", self.initial))];
        let initial = Block(initial.into_iter().flat_map(|block| block.0).collect());
        let ending = Block(self.ending.iter().flat_map(|sentence| title(sentence).0).collect());
        let mut drawing = Drawing::default();
        drawing.text(2 * GAP, GAP, "start", GREY, &initial);
        let head = 2 * GAP + initial.height();
        for (name, x) in names.iter().zip(&centres) {
            drawing.boxed(*x, head, ["#d6e4f0", BLUE, "black"], name);
        }
        let lanes_begin = head + names.iter().map(Block::height).max().unwrap_or(0) + GAP / 2;
        let mut tops = Vec::new();
        let (mut y, mut frame) = (lanes_begin + GAP, String::new());
        for (number, row) in rows.iter().enumerate() {
            if self.begins == Some(number) {
                let high = LINE + GAP + rows[number..].iter().map(Laid::height).sum::<usize>();
                frame = format!(
                    "<rect class=\"loop\" x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{high}\" fill=\"#fef5e7\" stroke=\"#b9770e\" \
                     stroke-dasharray=\"6 4\"/>\n",
                    GAP / 2,
                    total - GAP
                );
                drawing.text(2 * GAP, y + GAP / 2, "start", "#b9770e", &Block::new("loop, repeated forever", TITLE_CHARACTERS));
                y += LINE + GAP;
            }
            tops.push(y);
            y += row.height();
        }
        for x in &centres {
            drawing.line([*x, lanes_begin, *x, y], "stroke=\"#bbb\"");
        }
        for (number, (row, top)) in rows.iter().zip(&tops).enumerate() {
            draw_row(&mut drawing, number + 1, self.rows[number].is_message, row, *top, &centres, [numbers, beside]);
        }
        let place = |(lane, row): (usize, usize), until: usize| {
            (centres[lane], tops[row] + GAP + rows[row].heights()[..until].iter().sum::<usize>())
        };
        for arrow in &self.arrows {
            let (x1, y1) = place(arrow.sent, 4);
            if let Some(received) = arrow.received {
                let (x2, y2) = place(received, 1);
                drawing.line([x1, y1 - GAP / 2, x2, y2], &format!("stroke-dasharray=\"4 3\" {ARROW}"));
            }
        }
        drawing.text(2 * GAP, y + GAP, "start", "#c0392b", &ending);
        let high = y + ending.height() + 2 * GAP;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{total}\" height=\"{high}\" viewBox=\"0 0 {total} {high}\" \
             font-family=\"monospace\" font-size=\"12\">\n\
             <defs><marker id=\"head\" viewBox=\"0 0 10 10\" refX=\"10\" refY=\"5\" markerWidth=\"8\" markerHeight=\"8\" \
             orient=\"auto\"><path d=\"M0,0 L10,5 L0,10 z\" fill=\"{BLUE}\"/></marker></defs>\n\
             <rect width=\"{total}\" height=\"{high}\" fill=\"white\"/>\n{frame}{}{}</svg>\n",
            drawing.lines, drawing.texts
        )
    }
}

/// Draws a row. `columns`: right end of the numbers, and left end of the column beside the lanes.
fn draw_row(
    drawing: &mut Drawing,
    number: usize,
    is_message: bool,
    row: &Laid,
    top: usize,
    centres: &[usize],
    columns: [usize; 2],
) {
    let [label, received, moves, _] = row.heights();
    let of_label = top + GAP;
    let of_moves = of_label + label + received;
    if let Some((first, last)) = row.ends.filter(|_| label > 0) {
        drawing.boxed((centres[first] + centres[last]) / 2, of_label, ["white", "none", BLUE], &row.label);
        let y = of_label + label - GAP;
        let (from, to) = if is_message { (row.moves[0].0, row.moves[1].0) } else { (first, last) };
        if from != to {
            let more = if is_message { ARROW } else { "stroke=\"#1f4e79\" stroke-width=\"1.5\"" };
            drawing.line([centres[from], y, centres[to], y], more);
        }
    }
    if let Some((lane, block)) = &row.received {
        drawing.boxed(centres[*lane], of_label + label, ["#eef4fa", "none", BLUE], block);
    }
    for (lane, block) in &row.moves {
        drawing.boxed(centres[*lane], of_moves, ["white", "#777", "black"], block);
    }
    if let Some((lane, block)) = &row.sent {
        drawing.boxed(centres[*lane], of_moves + moves, ["#eef4fa", "none", BLUE], block);
    }
    let [numbers, mut y] = [columns[0], if row.moves.is_empty() { of_label } else { of_moves + GAP / 4 }];
    drawing.text(numbers, y, "end", GREY, &Block::new(&number.to_string(), TITLE_CHARACTERS));
    // The column begins at the moves if it fits there.
    let high: usize = row.beside.iter().map(|(block, _)| block.height()).sum();
    y = y.min((top + row.height() - GAP).saturating_sub(high)).max(of_label);
    for (block, colour) in &row.beside {
        drawing.text(columns[1], y, "start", colour, block);
        y += block.height();
    }
}
