#!/usr/bin/env python3
"""Draws the pictures of the README and the chapters: two explanations, and three plots of the CSV files beside it.

    python3 benches/plots/plots.py                 writes the pictures
    python3 benches/plots/plots.py --check         fails if a picture is not what this script draws
    python3 benches/plots/plots.py --read FILE...  takes figures of printed tables into the CSV files, then writes the pictures

--read knows the tables that `cargo bench --bench roofline`, `--bench widths` and `--bench roots` print, and the table of models
in benches/model_checker.md. It replaces the rows of warpset, of the placement-only kernel and of the thesis' table; all other
rows stay.

For each picture NAME.svg it writes src/docs/pictures/NAME.link too, which has the picture as a data URI: rustdoc has no other
way to show a file of the repository (src/lib.rs).

It needs Python 3.8 and nothing else, and draws the same bytes everywhere.
"""

import base64
import csv
import math
import re
import sys
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
LINKS = HERE.parent.parent / "src" / "docs" / "pictures"

# A light card, whatever is around it. The colours are like those of Okabe and Ito, but darker, so that text of them can be read.
PAPER, FRAME, INK, SOFT, FAINT, GRID = "#ffffff", "#d0d7de", "#1f2328", "#57606a", "#8c959f", "#e6e9ed"
BLUE, RED, GREEN, PURPLE, BROWN = "#0060a8", "#c24e00", "#00785a", "#a03d78", "#8a6100"
PALE_BLUE, PALE_RED, PALE_GREEN, PALE_GREY = "#dcebf7", "#fbe6d8", "#d9f0e8", "#f3f5f7"
SANS = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"


# Drawing


def number(value):
    """At most one decimal, so that the last digits of a logarithm do not matter."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


class Picture:
    """An SVG. One element a line and no empty line, so that changes can be read."""

    def __init__(self, width, height, title, description):
        self.width, self.height = width, height
        self.lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img"'
            f' font-family="{SANS}" font-size="13" fill="{INK}">',
            f"<title>{escape(title)}</title>",
            f"<desc>{escape(description)}</desc>",
        ]
        self.rect(0.5, 0.5, width - 1, height - 1, PAPER, FRAME, radius=10)
        self.text(24, 34, title, size=17, bold=True)

    def rect(self, x, y, width, height, fill, stroke="none", radius=4.0, stroke_width=1.0, dash=""):
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.lines.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" rx="{number(radius)}"'
            f' fill="{fill}" stroke="{stroke}" stroke-width="{number(stroke_width)}"{dashed}/>'
        )

    def text(self, x, y, text, size=13.0, color=INK, anchor="start", bold=False):
        """`**` in the text turns bold on and off."""
        weight = ' font-weight="600"' if bold else ""
        parts = escape(text).split("**")
        marked = "".join(f'<tspan font-weight="600">{part}</tspan>' if i % 2 else part for i, part in enumerate(parts))
        self.lines.append(
            f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}" fill="{color}" text-anchor="{anchor}"{weight}>'
            f"{marked}</text>"
        )

    def vertical_text(self, x, y, text, size=11.5, color=SOFT):
        """Text that reads upwards, centred at the point: the label of a vertical axis."""
        self.lines.append(
            f'<text transform="translate({number(x)} {number(y)}) rotate(-90)" font-size="{number(size)}" fill="{color}"'
            f' text-anchor="middle">{escape(text)}</text>'
        )

    def axis_break(self, x, y):
        """Two slanted strokes across a horizontal axis: the steps on both sides differ."""
        self.rect(x - 3, y - 2, 6, 4, PAPER, radius=0)
        for at in (x - 3, x + 3):
            self.line([(at - 3, y + 6), (at + 3, y - 6)], SOFT, 1.2)

    def paragraph(self, x, y, lines, size=12.0, color=SOFT, step=17):
        for i, line in enumerate(lines):
            self.text(x, y + i * step, line, size, color)

    def line(self, points, color=INK, width=1.0, dash=""):
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        joined = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        self.lines.append(
            f'<polyline points="{joined}" fill="none" stroke="{color}" stroke-width="{number(width)}" stroke-linejoin="round"'
            f' stroke-linecap="round"{dashed}/>'
        )

    def arrow(self, points, color=INK, width=1.5, dash=""):
        """Along the points, with a head at the last one."""
        (x0, y0), (x1, y1) = points[-2:]
        length = math.hypot(x1 - x0, y1 - y0)
        dx, dy = (x1 - x0) / length, (y1 - y0) / length
        base = (x1 - 8 * dx, y1 - 8 * dy)
        self.line(points[:-1] + [base], color, width, dash)
        self.polygon([(x1, y1), (base[0] - 4 * dy, base[1] + 4 * dx), (base[0] + 4 * dy, base[1] - 4 * dx)], color)

    def polygon(self, points, fill, stroke="none", stroke_width=1.5):
        joined = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        self.lines.append(f'<polygon points="{joined}" fill="{fill}" stroke="{stroke}" stroke-width="{number(stroke_width)}"/>')

    def mark(self, x, y, shape, color, hollow=False):
        """A point of a plot. Hollow: published, not measured."""
        fill, stroke, edge = (PAPER, color, 1.5) if hollow else (color, PAPER, 0.8)
        if shape == "disc":
            self.lines.append(
                f'<circle cx="{number(x)}" cy="{number(y)}" r="4.5" fill="{fill}" stroke="{stroke}"'
                f' stroke-width="{number(edge)}"/>'
            )
        elif shape == "square":
            self.polygon([(x - 4, y - 4), (x + 4, y - 4), (x + 4, y + 4), (x - 4, y + 4)], fill, stroke, edge)
        elif shape == "diamond":
            self.polygon([(x, y - 5.5), (x + 5.5, y), (x, y + 5.5), (x - 5.5, y)], fill, stroke, edge)
        elif shape == "triangle":
            self.polygon([(x, y - 5.5), (x + 5, y + 4), (x - 5, y + 4)], fill, stroke, edge)

    def svg(self):
        return "\n".join(self.lines + ["</svg>", ""])


# How a slot is claimed (cuda/warpset, "Chained claiming")


def claim():
    picture = Picture(
        880,
        610,
        "How a slot is claimed: chunk by chunk, each by one compare-and-swap",
        "Two threads race for an empty slot of three chunks. Thread 1 offers (a, b, c), thread 2 offers (a, b, d). Thread 1 wins"
        " chunk 0, thread 2 wins chunk 1, and each agrees with what the other one has written. Thread 1 wins the last chunk: its"
        " vector is New. Thread 2 finds c where it has d, and goes on to the next slot. A third thread that offers (a, b, c) is"
        " answered Seen.",
    )
    picture.paragraph(
        24,
        58,
        ["A slot of three chunks, say of 16 bytes each. The vectors of both threads differ in their last chunk only."],
        13,
    )
    box, left = 84, 314
    center = left + 1.5 * box
    picture.text(24, 96, "Thread 1 offers (a, b, c)", 14, BLUE, bold=True)
    picture.text(640, 96, "Thread 2 offers (a, b, d)", 14, RED, bold=True)
    picture.text(center, 96, "the slot", 14, INK, "middle", True)

    colors = {"a": (PALE_BLUE, BLUE), "b": (PALE_RED, RED), "c": (PALE_BLUE, BLUE)}
    top, step = 112, 54

    def slot(row, chunks, touched=None, color=INK):
        y = top + row * step
        for i, chunk in enumerate(chunks):
            fill, stroke = colors.get(chunk, (PALE_GREY, FAINT))
            x = left + i * box
            picture.rect(x + 2, y, box - 4, 34, fill, stroke, dash="" if chunk else "4 3")
            if chunk:
                picture.text(x + box / 2, y + 22, chunk, 15, stroke, "middle", True)
            else:
                picture.text(x + box / 2, y + 22, "EMPTY", 11, SOFT, "middle")
            if i == touched:
                picture.rect(x - 0.5, y - 2.5, box + 1, 39, "none", color, 6, 2.5)

    def first(row, chunk, what, why):
        y = top + row * step
        picture.text(24, y + 14, what, 13, BLUE, bold=True)
        picture.text(24, y + 31, why, 12, SOFT)
        picture.arrow([(258, y + 17), (left + chunk * box - 2, y + 17)] if chunk == 0 else over(y, 258, chunk, -1), BLUE)

    def second(row, chunk, what, why):
        y = top + row * step
        picture.text(640, y + 14, what, 13, RED, bold=True)
        picture.text(640, y + 31, why, 12, SOFT)
        picture.arrow([(622, y + 17), (left + (chunk + 1) * box + 2, y + 17)] if chunk == 2 else over(y, 622, chunk, 1), RED)

    def over(y, start, chunk, side):
        """An arrow that passes over other chunks and comes to its own from above."""
        x = left + (chunk + 0.5) * box
        return [(start, y + 17), (left - 20 if side < 0 else left + 3 * box + 20, y + 17),
                (left - 8 if side < 0 else left + 3 * box + 8, y - 11), (x, y - 11), (x, y - 2)]

    slot(0, ["", "", ""])
    slot(1, ["a", "", ""], 0, BLUE)
    first(1, 0, "chunk 0: EMPTY → a, won", "so it may try for chunk 1")
    slot(2, ["a", "", ""], 0, RED)
    second(2, 0, "chunk 0 holds a: agreed", "equal, so it goes on")
    slot(3, ["a", "b", ""], 1, RED)
    second(3, 1, "chunk 1: EMPTY → b, won", "so it may try for chunk 2")
    slot(4, ["a", "b", ""], 1, BLUE)
    first(4, 1, "chunk 1 holds b: agreed", "its swap fails, and returns b")
    slot(5, ["a", "b", "c"], 2, BLUE)
    first(5, 2, "chunk 2: EMPTY → c, won", "the last chunk: it gets **New**")
    slot(6, ["a", "b", "c"], 2, RED)
    second(6, 2, "chunk 2 holds c: different", "so it goes on to the **next slot**")
    picture.arrow([(28, top + 6), (28, top + 28)], FAINT)
    picture.text(40, top + 21, "time", 12, SOFT)

    y = top + 7 * step + 6
    picture.line([(24, y - 8), (856, y - 8)], GRID)
    later = "A thread that offers (a, b, c) from now on finds three equal chunks, and gets **Seen** and the same slot."
    picture.text(24, y + 14, later, 13)
    picture.paragraph(
        24,
        y + 38,
        [
            "A chunk goes from EMPTY to a value once, and never changes again.",
            "A thread may claim a chunk only if its vector equals all chunks before it. So no slot ever holds a mixture.",
            "A thread leaves a slot only if a chunk holds another value. So equal vectors meet, and one wins the last chunk.",
            "No thread waits. One that stops halfway leaves a slot that vectors with the same first chunks can complete.",
        ],
        12.5,
        INK,
        19,
    )
    return picture.svg()


# How trees share


def trees():
    picture = Picture(
        880,
        596,
        "How trees share: equal pairs are stored once",
        "Above: the vectors (1, 2, 3, 4) and (5, 6, 1, 2) as trees. Both have the pair (1, 2), which the node table holds once,"
        " in slot 70; their roots (70, 12) and (33, 70) are in the root table. Below: a vector of eight words and its successor,"
        " in which one word has changed: the successor brings one root and two nodes, and shares the other four nodes.",
    )
    cell, height = 34, 30

    def cells(x, y, values, fill, stroke, width=cell, bold=True, size=14):
        for i, value in enumerate(values):
            picture.rect(x + i * width, y, width, height, fill, stroke, 3)
            picture.text(x + (i + 0.5) * width, y + 20, value, size, stroke if fill != PAPER else INK, "middle", bold)

    colors = {"12": (PALE_RED, RED), "34": (PALE_BLUE, BLUE), "56": (PALE_GREEN, GREEN)}
    picture.text(24, 72, "vectors", 13, SOFT, bold=True)
    picture.text(318, 72, "root table", 13, SOFT, bold=True)
    picture.text(590, 72, "node table", 13, SOFT, bold=True)
    picture.text(590, 88, "8 bytes a pair, shared by all vectors", 11.5, SOFT)

    y1, y2 = 112, 212
    cells(24, y1, "12", *colors["12"])
    cells(24 + 2 * cell + 6, y1, "34", *colors["34"])
    cells(24, y2, "56", *colors["56"])
    cells(24 + 2 * cell + 6, y2, "12", *colors["12"])
    for y, slot in ((y1, "5"), (y2, "9")):
        picture.arrow([(176, y + 15), (290, y + 15)], INK)
        picture.text(230, y + 8, "its root", 11.5, SOFT, "middle")
        picture.text(314, y + 20, slot + ":", 13, SOFT, "end")
        picture.text(24, y + 48, f"**New**: its reference is slot {slot}", 12, INK)
    wide = 44
    for y, left, right in ((y1, ("70", "12"), ("12", "34")), (y2, ("33", "56"), ("70", "12"))):
        for i, (value, pair) in enumerate((left, right)):
            fill, stroke = colors[pair]
            picture.rect(320 + i * wide, y, wide, height, fill, stroke, 3)
            picture.text(320 + (i + 0.5) * wide, y + 20, value, 14, stroke, "middle", True)
    nodes = {"12": (y1, "34"), "70": ((y1 + y2) / 2, "12"), "33": (y2 + 50, "56")}
    for slot, (y, pair) in nodes.items():
        picture.text(584, y + 20, slot + ":", 13, SOFT, "end")
        cells(590, y, pair, *colors[pair])
    middle = (y1 + y2) / 2 + 15
    right_edge, first = 320 + 2 * wide, 320 + 0.5 * wide
    picture.arrow([(right_edge, y1 + 15), (552, y1 + 15)], BLUE)
    picture.arrow([(first, y1 + height), (first, middle - 8), (552, middle - 8)], RED)
    picture.arrow([(right_edge, y2 + 15), (470, y2 + 15), (470, middle + 8), (552, middle + 8)], RED)
    picture.arrow([(first, y2 + height), (first, y2 + 65), (552, y2 + 65)], GREEN)
    picture.text(672, middle - 2, "Both vectors have the", 12, RED)
    picture.text(672, middle + 14, "pair (1, 2): one node.", 12, RED)

    # A successor
    top = 318
    picture.line([(24, top - 16), (856, top - 16)], GRID)
    picture.text(24, top + 12, "A step that changes one word of eight", 15, bold=True)
    words = [f"w{i}" for i in range(8)]
    x0, pitch, w = 24, 64, 46
    y_words, y_leaf, y_node, y_root = top + 190, top + 136, top + 86, top + 36
    at = lambda place: x0 + place * pitch + w / 2
    leaf_x = [(at(2 * i) + at(2 * i + 1)) / 2 for i in range(4)]
    node_x = [(leaf_x[0] + leaf_x[1]) / 2, (leaf_x[2] + leaf_x[3]) / 2]
    root_x = (node_x[0] + node_x[1]) / 2
    new_leaf, new_node, new_root = at(8) + 10, node_x[1] + 118, root_x + 140
    box = 62

    def link(upper, y_upper, lower, y_lower, color, width=1.5):
        picture.line([(upper, y_upper + 26), (lower, y_lower)], color, width)

    for i in range(8):
        link(leaf_x[i // 2], y_leaf, at(i), y_words, FAINT)
    for i in range(4):
        link(node_x[i // 2], y_node, leaf_x[i], y_leaf, FAINT)
    for i in range(2):
        link(root_x, y_root, node_x[i], y_node, FAINT)
    link(new_root, y_root, node_x[0], y_node, RED, 2)
    link(new_root, y_root, new_node, y_node, RED, 2)
    link(new_node, y_node, leaf_x[2], y_leaf, RED, 2)
    link(new_node, y_node, new_leaf, y_leaf, RED, 2)
    link(new_leaf, y_leaf, at(6), y_words, RED, 2)
    link(new_leaf, y_leaf, at(8), y_words, RED, 2)

    def part(x, y, label, color=FAINT, fill=PALE_GREY, width=box):
        picture.rect(x - width / 2, y, width, 26, fill, color, 4, 1.5)
        picture.text(x, y + 17, label, 12, INK if color == FAINT else color, "middle", color != FAINT)

    for i in range(4):
        part(leaf_x[i], y_leaf, "node")
    for i in range(2):
        part(node_x[i], y_node, "node")
    part(root_x, y_root, "root")
    part(new_root, y_root, "new root", RED, PALE_RED, 78)
    part(new_node, y_node, "new node", RED, PALE_RED, 78)
    part(new_leaf, y_leaf, "new node", RED, PALE_RED, 78)
    for i, word in enumerate(words):
        part(at(i), y_words, word, FAINT, PAPER, w)
    part(at(8), y_words, "w7′", RED, PALE_RED, w)
    picture.paragraph(642, top + 44, ["The vector: a root and 6 nodes.", "Its successor has another w7."], 12, INK, 18)
    lines = ["It takes a root and 2 nodes,", "24 bytes; 4 nodes are shared.", "In a bucket table: 32 bytes."]
    picture.paragraph(642, top + 96, lines, 12, RED, 18)
    picture.paragraph(642, top + 166, ["If its nodes are there already,", "it takes only its root: 8 bytes."], 12, INK, 18)
    picture.text(24, 574, "A vector of w words has a root and w - 2 nodes of 8 bytes. Free slots come on top.", 12, SOFT)
    return picture.svg()


# Throughput against fill

SERIES = {  # colour, mark, dashes, width
    "placement": (SOFT, None, "5 4", 1.8),
    "warpset": (BLUE, "disc", "", 3.0),
    "thesis": (PURPLE, "triangle", "", 1.5),
    "cuCollections": (RED, "diamond", "", 1.5),
    "WarpSpeed": (GREEN, "square", "", 1.5),
    "compact iceberg": (GREEN, "square", "", 1.5),
}


def throughput():
    rows = read_csv("throughput.csv")
    panels = sorted({row["panel"] for row in rows}, key=lambda panel: (not panel[0].isdigit(), len(panel), panel))  # by width
    columns, panel_width, panel_height, top = 3, 278, 222, 72
    plot_width, plot_height = 148, 150
    lines = -(-len(panels) // columns)
    notes = [
        "All measured on an NVIDIA H200, into an empty table that is this full at the end, with duplication 2: vectors are drawn",
        "from a pool of half as many. 2²⁷ vectors; of warpset's compact table as many as make 2²⁸ slots this full.",
        "**placement**: a kernel that is given each vector's slot, and only reads, claims and writes it. A measured rate, not a"
        " bound.",
        "Other tables: the best variant at each fill whose counts were right. **thesis**: that of Bergsma (2019).",
        "**cuCollections**: sets of 8 and 16-byte keys (August 2026); from 8 words on of row numbers, the rows lie outside"
        " (October 2024).",
        "**WarpSpeed** (2026): keys and values of 8 bytes. **compact iceberg**: keys of 50 bits.",
    ]
    height = top + lines * panel_height + 4 + len(notes) * 17 + 8
    best = {panel: max(float(row["g_per_s"]) for row in rows if row["panel"] == panel) for panel in panels}
    picture = Picture(
        880,
        height,
        "Find-or-put: throughput against fill",
        "A panel for each width. Each has 10^9 find-or-puts a second against the fill of the table, for warpset, for the"
        " placement-only kernel and for other tables. All figures are in benches/plots/throughput.csv.",
    )
    limit = 5 * math.ceil(max(best.values()) / 5)
    for index, panel in enumerate(panels):
        x0 = 62 + index % columns * panel_width
        y0 = top + index // columns * panel_height + 18
        place_x = lambda fill: x0 + (fill - 0.2) / 0.8 * plot_width
        place_y = lambda rate: y0 + plot_height - rate / limit * plot_height
        picture.text(x0, y0 - 10, panel, 13.5, bold=True)
        for rate in range(0, limit + 1, 5):
            picture.line([(x0, place_y(rate)), (x0 + plot_width, place_y(rate))], FAINT if rate == 0 else GRID)
            picture.text(x0 - 6, place_y(rate) + 4, str(rate), 11, SOFT, "end")
        for fill in (0.25, 0.5, 0.75, 1.0):
            picture.line([(place_x(fill), y0 + plot_height), (place_x(fill), y0 + plot_height + 4)], FAINT)
            picture.text(place_x(fill), y0 + plot_height + 17, f"{fill:g}", 11, SOFT, "middle")
        picture.text(x0 + plot_width / 2, y0 + plot_height + 33, "fill (vectors stored / slots)", 11.5, SOFT, "middle")
        picture.vertical_text(x0 - 28, y0 + plot_height / 2, "10⁹ find-or-puts a second")
        names = [name for name in SERIES if any(row["panel"] == panel and row["series"] == name for row in rows)]
        ends = []
        for name in names:  # the first one lowest
            color, mark, dash, width = SERIES[name]
            points = sorted((float(row["fill"]), float(row["g_per_s"]), row["kind"]) for row in rows
                            if row["panel"] == panel and row["series"] == name)
            picture.line([(place_x(fill), place_y(rate)) for fill, rate, _ in points], color, width, dash)
            for fill, rate, kind in points:
                if mark:
                    picture.mark(place_x(fill), place_y(rate), mark, color, kind == "published")
            ends.append([place_y(points[-1][1]) + 4, name, color])
        ends.sort()
        for _ in range(50):  # labels that would overlap push each other apart
            for upper, lower in zip(ends, ends[1:]):
                overlap = 14 - (lower[0] - upper[0])
                if overlap > 0:
                    upper[0] -= overlap / 2
                    lower[0] += overlap / 2
        for y, name, color in ends:
            picture.text(x0 + plot_width + 5, min(y, y0 + plot_height), name, 11.5, color, bold=name == "warpset")
    picture.paragraph(24, top + lines * panel_height + 14, notes, 11.5)
    return picture.svg()


# Widths


LAYOUTS = {  # name in the CSV: what it is called, colour, mark, dashes
    "padded": ("bucket table", BLUE, "disc", ""),
    "dense": ("bucket table, dense slots", RED, "diamond", "5 4"),
    "indexed": ("indexed table", GREEN, "triangle", "2 3"),
}


def widths():
    rows = read_csv("widths.csv")
    words = sorted({int(row["words"]) for row in rows})
    panels = {
        "new": "Into an empty table, fill 0.7 at the end; each random vector offered twice on average",
        "seen": "All of them again, when they are stored",
    }
    left, plot_width, plot_height, top, gap = 66, 780, 210, 86, 76
    picture = Picture(
        880,
        top + 2 * (plot_height + gap) + 6,
        "Find-or-put: throughput of every width",
        "Two panels: 10^9 find-or-puts a second against the words of a vector, for the bucket table, with dense slots, and for"
        " the indexed table. All figures are in benches/plots/widths.csv.",
    )
    at = left
    for label, color, mark, dash in LAYOUTS.values():
        picture.line([(at, 60), (at + 34, 60)], color, 2, dash)
        picture.mark(at + 17, 60, mark, color)
        picture.text(at + 42, 64, label, 12, color)
        at += 60 + 7.5 * len(label)
    # Words rise by one to 16, and by more behind that: each such step is wider, has no line, and breaks the axis.
    jumps = [after for before, after in zip(words, words[1:]) if after - before > 1]
    place = {width: words.index(width) + 0.5 + 0.6 * sum(jump <= width for jump in jumps) for width in words}
    place_x = lambda width: left + place[width] * plot_width / (len(words) + 0.6 * len(jumps))
    for index, (state, label) in enumerate(panels.items()):
        y0 = top + index * (plot_height + gap) + 14
        limit = 5 * math.ceil(max(float(row["g_per_s"]) for row in rows if row["state"] == state and row["fill"] == "0.7") / 5)
        place_y = lambda rate: y0 + plot_height - rate / limit * plot_height
        picture.text(left, y0 - 8, label, 13.5, bold=True)
        for rate in range(0, limit + 1, 5):
            picture.line([(left, place_y(rate)), (left + plot_width, place_y(rate))], FAINT if rate == 0 else GRID)
            picture.text(left - 6, place_y(rate) + 4, str(rate), 11, SOFT, "end")
        for width in words:
            picture.text(place_x(width), y0 + plot_height + 17, str(width), 11, SOFT, "middle")
        for before, after in zip(words, words[1:]):
            if after in jumps:
                picture.axis_break((place_x(before) + place_x(after)) / 2, y0 + plot_height)
        picture.text(left + plot_width / 2, y0 + plot_height + 35, "words of a vector", 12, SOFT, "middle")
        picture.vertical_text(left - 32, y0 + plot_height / 2, "10⁹ find-or-puts a second", 12)
        for layout, (_, color, mark, dash) in LAYOUTS.items():
            points = sorted((int(row["words"]), float(row["g_per_s"])) for row in rows
                            if (row["layout"], row["state"], row["fill"]) == (layout, state, "0.7"))
            for before, after in zip(points, points[1:]):
                if after[0] not in jumps and (layout != "dense" or words.index(after[0]) - words.index(before[0]) == 1):
                    picture.line([(place_x(width), place_y(rate)) for width, rate in (before, after)], color, 2, dash)
            for width, rate in points:
                picture.mark(place_x(width), place_y(rate), mark, color)
    return picture.svg()


# States a second


EXPLORERS = {  # name in the CSV: colour, mark
    "LTSmin": (BROWN, "square"),
    "GPUexplore 3.0, Titan RTX": (GREEN, "triangle"),
    "GPUexplore 3.0, V100": (RED, "diamond"),
    "warpset": (BLUE, "disc"),
}


def explorers():
    rows = read_csv("explorers.csv")
    rates = {}
    for row in rows:
        rates.setdefault(row["model"], {})[row["explorer"]] = (float(row["million_states_a_second"]), row["kind"])
    states = {row["model"]: int(row["states"]) for row in rows}
    models = sorted(rates, key=lambda model: (-rates[model]["warpset"][0], model))
    top, step, left, width = 112, 23, 206, 610
    height = top + len(models) * step + 98
    picture = Picture(
        880,
        height,
        "Model checking: states a second, against published explorers",
        "A row for each model of the BEEM benchmark, on a logarithmic scale of million states a second: LTSmin on 32 cores, and"
        " GPUexplore 3.0 on a Titan RTX and on a V100, as published; warpset's explore on an H200, as measured. All figures are"
        " in benches/plots/explorers.csv.",
    )
    low, high = 1.0, 4000.0
    place = lambda rate: left + math.log(rate / low) / math.log(high / low) * width
    bottom = top + len(models) * step
    for index in range(0, len(models), 2):
        picture.rect(16, top + index * step, 848, step, "#f6f8fa", radius=3)
    for decade in (1, 10, 100, 1000):
        for minor in range(1, 10):
            value = decade * minor
            if value <= high:
                picture.line([(place(value), top - 8), (place(value), bottom)], GRID, 1.5 if minor == 1 else 0.5)
        picture.text(place(decade), bottom + 18, f"{decade:,}", 12, SOFT, "middle")
    picture.text(left + width / 2, bottom + 38, "million states a second (logarithmic)", 12.5, SOFT, "middle")
    picture.text(24, top - 18, "model", 12, SOFT)
    picture.text(left - 14, top - 18, "million states", 12, SOFT, "end")
    for x, y, name, label in (
        (left, top - 18, "LTSmin", "LTSmin, 32 cores"),
        (place(9.2), top - 37, "GPUexplore 3.0, Titan RTX", "GPUexplore 3.0, Titan RTX"),
        (place(9.2), top - 18, "GPUexplore 3.0, V100", "GPUexplore 3.0, V100"),
        (place(700), top - 18, "warpset", "warpset, H200"),
    ):
        color, mark = EXPLORERS[name]
        picture.mark(x + 6, y - 4, mark, color, hollow=name != "warpset")
        picture.text(x + 17, y, label, 12.5, color, bold=True)
    for index, model in enumerate(models):
        y = top + (index + 0.5) * step
        picture.text(24, y + 4.5, model, 12.5)
        picture.text(left - 14, y + 4.5, f"{states[model] / 1e6:,.1f}", 12, SOFT, "end")
        published = [rate for name, (rate, _) in rates[model].items() if name.startswith("GPUexplore")]
        ours = rates[model]["warpset"][0]
        if published:
            picture.line([(place(max(published)), y), (place(ours), y)], FAINT, 1, "1 4")
        for name, (color, mark) in EXPLORERS.items():
            if name in rates[model]:
                rate, kind = rates[model][name]
                picture.mark(place(rate), y, mark, color, kind == "published")
        picture.text(place(ours) + 10, y + 4.5, f"{ours:,.0f}", 12, BLUE, bold=True)
    picture.paragraph(
        24,
        bottom + 62,
        [
            "Exploration alone. **Filled**: measured on one NVIDIA H200. **Hollow**: published by Wijs and Osama (2024).",
            "Its cards are older, so it is not the programs alone that are compared.",
        ],
        12,
    )
    return picture.svg()


# Data

FIELDS = {
    "throughput.csv": ["panel", "series", "fill", "g_per_s", "kind", "source"],
    "widths.csv": ["words", "layout", "fill", "state", "g_per_s", "bytes", "kind", "source"],
    "explorers.csv": ["model", "states", "explorer", "million_states_a_second", "kind", "source"],
}
KEYS = {
    "throughput.csv": ["panel", "series", "fill"],
    "widths.csv": ["words", "layout", "fill", "state"],
    "explorers.csv": ["model", "explorer"],
}


def read_csv(name):
    with open(HERE / name, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        assert row["kind"] in ("measured", "published"), f"{name}: kind is `measured` or `published`, not `{row['kind']}`"
    return rows


def take(name, found):
    """Puts rows into a CSV file: in place of those with the same key, or behind the last of their panel or model."""
    rows, keys = read_csv(name), KEYS[name]
    for row in found:
        same = [i for i, old in enumerate(rows) if all(old[key] == row[key] for key in keys)]
        related = [i for i, old in enumerate(rows) if all(old[key] == row[key] for key in keys[:-1])]
        group = [i for i, old in enumerate(rows) if old[keys[0]] == row[keys[0]]]
        if same:
            rows[same[0]] = row
        else:
            rows.insert(1 + (related or group or [len(rows) - 1])[-1], row)
    with open(HERE / name, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS[name], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{name}: {len(found)} rows taken")


def tables(text):
    """The Markdown tables of a text: a heading and rows each. Lines between the rows do not end a table, another heading does."""
    heading, rows = None, []
    cells = lambda line: [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]
    lines = [cells(line) if line.lstrip().startswith("|") else None for line in text.splitlines()]
    for i, line in enumerate(lines):
        if line is None:
            continue
        if i + 1 < len(lines) and lines[i + 1] and all(set(cell) <= set("-:") and cell for cell in lines[i + 1]):
            if heading:
                yield heading, rows
            heading, rows = line, []
        elif heading and len(line) == len(heading) and not set(line[0]) <= set("-:"):
            rows.append(line)
    if heading:
        yield heading, rows


def take_tables(path):
    throughput_rows, width_rows, explorer_rows = [], [], []

    def rate(panel, series, fill, value, command):
        fill = f"{float(fill):g}"
        throughput_rows.append(dict(panel=panel, series=series, fill=fill, g_per_s=value, kind="measured",
                                    source=f"cargo bench --bench {command}"))

    for heading, rows in tables(Path(path).read_text(encoding="utf-8")):
        if heading[:7] == ["words", "fill", "dup 2", "of bound", "bound", "placement", "thesis"]:
            for row in rows:
                for series, value in (("warpset", row[2]), ("placement", row[5]), ("thesis", row[6])):
                    rate("1 word" if row[0] == "1" else f"{row[0]} words", series, row[1], value, "roofline")
        elif heading[:6] == ["table", "fill", "keys, M", "dup 2", "of placement", "placement"]:
            for row in rows:
                if row[0] == "compact, 54 bits":
                    for series, value in (("warpset", row[3]), ("placement", row[5])):
                        rate("compact, 54-bit keys", series, row[1], value, "roots")
        elif heading[:4] == ["words", "layout", "bytes", "fill 0.25"]:
            for row in rows:
                for fill, both in zip(("0.25", "0.7", "0.9"), row[3:]):
                    for state, value in zip(("new", "seen"), both.split("\\|")):
                        width_rows.append(dict(words=row[0], layout=row[1], fill=fill, state=state, g_per_s=value.strip(),
                                               bytes=row[2], kind="measured", source="cargo bench --bench widths"))
        elif heading[:2] == ["model", "states"] and "million states a second" in heading and "GPUexplore 3.0" in heading:
            for row in rows:
                explorer_rows.append(dict(
                    model=row[0], states=row[1].replace(",", ""), explorer="warpset",
                    million_states_a_second=row[heading.index("million states a second")].replace(",", ""), kind="measured",
                    source="benches/model_checker.md: one NVIDIA H200"))
    if throughput_rows:
        take("throughput.csv", throughput_rows)
    if width_rows:
        take("widths.csv", width_rows)
    if explorer_rows:
        take("explorers.csv", explorer_rows)
    if not throughput_rows and not width_rows and not explorer_rows:
        sys.exit(f"{path}: no table that is known here")


def main(arguments):
    if arguments[:1] == ["--read"] and len(arguments) > 1:
        for path in arguments[1:]:
            take_tables(path)
    elif arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    files = {}
    for draw in (claim, trees, throughput, widths, explorers):
        name, svg = draw.__name__, draw()
        files[HERE / f"{name}.svg"] = svg
        files[LINKS / f"{name}.link"] = f"[{name}]: data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}\n"
    if arguments == ["--check"]:
        wrong = [path.name for path, text in files.items() if not path.exists() or path.read_bytes() != text.encode()]
        if wrong:
            sys.exit(f"not what benches/plots/plots.py draws: {', '.join(wrong)}. Run it without --check, and commit that.")
        return
    LINKS.mkdir(exist_ok=True)
    for path, text in files.items():
        path.write_bytes(text.encode())


if __name__ == "__main__":
    main(sys.argv[1:])
