//! Steps through a model by hand: shows a state and its steps, takes one, goes back, follows a path that was found.
//!
//! Commands are read line by line from standard input, so it works over ssh and in scripts. Without a terminal there is no
//! prompt.

use anyhow::{Context, Error, Result};
use std::io::{BufRead, BufReader, IsTerminal as _, Write};
use warpset_model::interpreter::{Interpreter, Scratch, Step};
use warpset_model::ir::{Model, Source};
use warpset_model::language::Text;
use warpset_model::trace::{all_steps, automaton_move, changes_text, state_json, state_text, step_name};
use warpset_support::escaping;
use warpset_support::text::TextReader;

const HELP: &str = "\
commands:
  NUMBER     take this step
  n [COUNT]  next step of the path that was found
  u [COUNT]  undo
  i          back to the initial state
  h          history: the steps taken so far
  s          the current state and its steps
  v          all variables, also those that are 0
  e EXPR     value of an expression in the current state
  q          quit
";

/// Most steps shown for a state.
const MOST_SHOWN: usize = 200;

/// Steps through the model by commands from standard input. `path`: states of a path that was found. `begins`: number of the
/// state in which its loop begins.
pub fn walk(text: &Text, path: &[Vec<u32>], begins: Option<usize>) -> Result<()> {
    let (input, prompts) = (BufReader::new(TextReader::new(std::io::stdin().lock())), std::io::stdin().is_terminal());
    match run(text, (path, begins), input, &mut std::io::stdout().lock(), prompts) {
        Err(error) if is_closed(&error) => Ok(()),
        other => other.context("--step"),
    }
}

/// Whether the reader of standard output has closed it.
fn is_closed(error: &Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// A walk through a model, which can go back.
struct Walk<'a> {
    text: &'a Text,
    interpreter: Interpreter<'a>,
    /// States from the initial one to the current one.
    states: Vec<Vec<u32>>,
    taken: Vec<Option<Step>>,
    /// States of the path that was found; empty if there is none.
    path: &'a [Vec<u32>],
    /// Number of the state in which the loop of the path begins.
    begins: Option<usize>,
}

/// Steps of a state, with the states that they lead to, and a fault that ends the list.
type Steps = (Vec<(Option<Step>, Vec<u32>)>, Option<String>);

/// Reads commands until the input ends or quits. `along`: states of a path that was found, or none, and where its loop begins.
/// `prompts`: a person types.
pub fn run(
    text: &Text,
    along: (&[Vec<u32>], Option<usize>),
    input: impl BufRead,
    output: &mut impl Write,
    prompts: bool,
) -> Result<()> {
    let (model, (path, begins)) = (text.model(), along);
    let (interpreter, states) = (Interpreter::new(model), vec![model.initial_state()]);
    let mut walk = Walk { text, interpreter, states, taken: Vec::new(), path, begins };
    if prompts {
        writeln!(output, "{HELP}")?;
    }
    walk.show(output)?;
    let mut lines = input.lines();
    loop {
        if prompts {
            write!(output, "> ")?;
        }
        output.flush()?;
        let Some(line) = lines.next() else { return Ok(()) };
        let line = line?;
        let (command, argument) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        if ["q", "quit", "exit"].contains(&command) {
            return Ok(());
        }
        walk.command(command, argument.trim(), output)?;
    }
}

impl Walk<'_> {
    fn model(&self) -> &Model {
        self.interpreter.model()
    }

    fn state(&self) -> &[u32] {
        self.states.last().expect("a walk has its initial state")
    }

    fn steps(&self) -> Steps {
        let mut steps = Vec::new();
        let visit = |step, to: &[u32]| steps.push((step, to.to_vec()));
        let fault = all_steps(&self.interpreter, self.state(), &mut Scratch::default(), visit).err();
        (
            steps,
            fault.map(|fault| {
                let place = self.model().source.place(fault.span);
                format!("fault at {}: {}", escaping::line(&place), fault.message(self.model()))
            }),
        )
    }

    fn command(&mut self, command: &str, argument: &str, output: &mut impl Write) -> Result<()> {
        let count = || match argument {
            "" => Some(1),
            number => number.parse::<usize>().ok().filter(|count| *count > 0),
        };
        match command {
            "" | "s" => self.show(output),
            "?" | "help" => Ok(output.write_all(HELP.as_bytes())?),
            "i" => {
                self.states.truncate(1);
                self.taken.clear();
                self.show(output)
            }
            "u" => match count() {
                Some(count) if count <= self.taken.len() => {
                    self.states.truncate(self.states.len() - count);
                    self.taken.truncate(self.taken.len() - count);
                    self.show(output)
                }
                Some(_) => Ok(writeln!(output, "only {} can be undone", counted(self.taken.len()))?),
                None => Ok(writeln!(output, "`{}` is not a number of steps", escaping::line(argument))?),
            },
            "n" => match count() {
                Some(count) => self.follow(count, output),
                None => Ok(writeln!(output, "`{}` is not a number of steps", escaping::line(argument))?),
            },
            "h" => self.history(output),
            "v" => Ok(writeln!(output, "{:#}", state_json(self.model(), self.state()))?),
            "e" => self.evaluate(argument, output),
            number => match number.parse::<usize>() {
                Ok(number) => self.take(number, output),
                Err(_) => Ok(writeln!(output, "`{}` is not a command; ? lists them", escaping::line(command))?),
            },
        }
    }

    /// Shows the current state, its steps, and which of them is on the path.
    fn show(&self, output: &mut impl Write) -> Result<()> {
        let (steps, fault) = self.steps();
        let begins = self.begins == Some(self.taken.len()) && self.path.starts_with(&self.states);
        let begins = if begins { " (the loop begins here)" } else { "" };
        writeln!(output, "state {}{begins}: {}", self.taken.len(), state_text(self.model(), self.state()))?;
        let next = self.next_of_path();
        for (number, (step, to)) in steps.iter().enumerate().take(MOST_SHOWN) {
            let mark = if next == Some(to) { " <- path" } else { "" };
            writeln!(output, "  {}. {}{mark}", number + 1, self.described(*step, self.state(), to))?;
        }
        if steps.len() > MOST_SHOWN {
            writeln!(output, "  ... and {} more steps", steps.len() - MOST_SHOWN)?;
        }
        if let Some(fault) = fault {
            writeln!(output, "  {fault}")?;
        } else if steps.is_empty() {
            writeln!(output, "  no step is possible: a deadlock")?;
        }
        Ok(())
    }

    fn described(&self, step: Option<Step>, from: &[u32], to: &[u32]) -> String {
        let (model, changes) = (self.model(), changes_text(self.model(), step, from, to));
        let step = step.map_or_else(|| "only the automaton moves".into(), |step| step_name(model, step, Some([from, to])));
        let moved =
            automaton_move(model, from, to).map(|(from, to)| format!(" [{} -> {}]", escaping::line(from), escaping::line(to)));
        let moved = moved.unwrap_or_default();
        step + &moved + &if changes.is_empty() { changes } else { format!("; {changes}") }
    }

    fn take(&mut self, number: usize, output: &mut impl Write) -> Result<()> {
        let (mut steps, _) = self.steps();
        if number == 0 || number > steps.len() {
            let there = if steps.is_empty() { "no step is possible".into() } else { format!("steps are 1 to {}", steps.len()) };
            return Ok(writeln!(output, "there is no step {number}: {there}")?);
        }
        let (step, to) = steps.swap_remove(number - 1);
        self.states.push(to);
        self.taken.push(step);
        self.show(output)
    }

    /// The next state of the path, if the walk has followed it so far.
    fn next_of_path(&self) -> Option<&Vec<u32>> {
        self.path.get(self.states.len()).filter(|_| self.path.starts_with(&self.states))
    }

    fn follow(&mut self, count: usize, output: &mut impl Write) -> Result<()> {
        for followed in 0..count {
            let Some(next) = self.next_of_path().cloned() else {
                let why = match self.path.len() {
                    0 => "no path was found".into(),
                    _ if !self.path.starts_with(&self.states) => {
                        "the walk has left the path; undo, or i, leads back to it".into()
                    }
                    _ => self.begins.map_or_else(
                        || "the path ends here".into(),
                        |begins| format!("the path ends here: this is state {begins} again"),
                    ),
                };
                writeln!(output, "{why}")?;
                return if followed > 0 { self.show(output) } else { Ok(()) };
            };
            let step = self.steps().0.into_iter().find(|(_, to)| *to == next);
            let Some((step, to)) = step else { return Ok(writeln!(output, "the path cannot be followed from here")?) };
            self.states.push(to);
            self.taken.push(step);
        }
        self.show(output)
    }

    fn history(&self, output: &mut impl Write) -> Result<()> {
        writeln!(output, "  0. {}", state_text(self.model(), &self.states[0]))?;
        for (number, (step, pair)) in self.taken.iter().zip(self.states.windows(2)).enumerate() {
            writeln!(output, "  {}. {}", number + 1, self.described(*step, &pair[0], &pair[1]))?;
        }
        Ok(())
    }

    fn evaluate(&self, expression: &str, output: &mut impl Write) -> Result<()> {
        let source = Source { name: "expression".into(), text: expression.into() };
        match self.text.condition(&source) {
            Err(error) => writeln!(output, "{error}")?,
            Ok((expression, _)) => match self.interpreter.value(&expression, self.state()) {
                Ok(value) => writeln!(output, "{value}")?,
                Err(fault) => writeln!(output, "fault: {}", fault.message(self.model()))?,
            },
        }
        Ok(())
    }
}

fn counted(steps: usize) -> String {
    warpset_support::numbers::counted(steps as u64, "step")
}

#[cfg(test)]
mod tests {
    //! Keeps this promise of `examples/explore/docs/searching.md`:
    //!
    //! - A user can step through a model by hand, back and along a found path (also
    //!   `examples/explore/tests/explore/command_line.rs`).

    use super::*;
    use warpset_model::input::Input;
    use warpset_model::language::Format;

    const MODEL: &str = "byte x, a[2]; process P { state s, t; init s; trans s -> t { guard x < 2; effect x = x + 1; }, t -> s {}, \
        s -> s { guard x == 2; effect a[x] = 1; }; } system async;";

    fn said(path: &[Vec<u32>], commands: &str) -> String {
        let reader = Box::new(MODEL.as_bytes());
        let input = Input { name: "test".into(), path: "test.dve".into(), bytes: None, reader, identity: None };
        let text = Text::read(Format::Dve, input, &Default::default()).unwrap();
        let mut output = Vec::new();
        run(&text, (path, None), commands.as_bytes(), &mut output, false).unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn steps_are_taken_and_undone() {
        let text = said(&[], "1\n1\nh\nu 2\nu\nq\n1\n");
        assert_eq!(
            text,
            "state 0: P.s\n  1. P: guard x < 2; effect x = x + 1; (s -> t, line 1); x: 0 -> 1\n\
             state 1: P.t, x = 1\n  1. P: t -> s (line 1)\n\
             state 2: P.s, x = 1\n  1. P: guard x < 2; effect x = x + 1; (s -> t, line 1); x: 1 -> 2\n  \
             0. P.s\n  1. P: guard x < 2; effect x = x + 1; (s -> t, line 1); x: 0 -> 1\n  2. P: t -> s (line 1)\n\
             state 0: P.s\n  1. P: guard x < 2; effect x = x + 1; (s -> t, line 1); x: 0 -> 1\n\
             only 0 steps can be undone\n"
        );
    }

    #[test]
    fn wrong_commands_say_what_is_possible() {
        let text = said(&[], "7\n0\nxyz\nu zero\nn\ne x + 1\ne y\ne a[7]\n");
        for part in [
            "there is no step 7: steps are 1 to 1",
            "there is no step 0",
            "`xyz` is not a command; ? lists them",
            "`zero` is not a number of steps",
            "no path was found",
            "\n1\n",
            "there is no variable or constant `y`",
            "fault: the array a has 2 elements, but its index is 7",
        ] {
            assert!(text.contains(part), "{part} is missing: {text}");
        }
    }

    #[test]
    fn faults_are_shown_with_the_steps_before_them() {
        let text = said(&[], "1\n1\n1\n1\n");
        assert!(text.contains("state 4: P.s, x = 2") && text.contains("fault at test:1:"), "{text}");
    }

    #[test]
    fn a_path_is_followed_and_left() {
        let model = |commands: &str| {
            // States of the path: P steps to t and back.
            let reader = Box::new(MODEL.as_bytes());
            let input = Input { name: "test".into(), path: "test.dve".into(), bytes: None, reader, identity: None };
            let text = Text::read(Format::Dve, input, &Default::default()).unwrap();
            let interpreter = Interpreter::new(text.model());
            let mut path = vec![text.model().initial_state()];
            for _ in 0..2 {
                let mut next = Vec::new();
                all_steps(&interpreter, &path[path.len() - 1], &mut Scratch::default(), |_, to| next = to.to_vec()).unwrap();
                path.push(next);
            }
            said(&path, commands)
        };
        let text = model("n\nn\nn\n");
        assert!(text.contains("x: 0 -> 1 <- path") && text.ends_with("the path ends here\n"), "{text}");
        // Fewer steps than asked for: the state that was reached is shown.
        let text = model("n 9\n");
        assert!(text.contains("the path ends here\nstate 2: "), "{text}");
        let text = model("n 2\n1\nn\nu\nn\n");
        assert!(text.contains("the walk has left the path") && text.ends_with("the path ends here\n"), "{text}");
    }
}
