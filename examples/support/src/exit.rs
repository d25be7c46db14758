//! Exit codes, the same for `explore`, `decompose` and `replay`; `count` and `factorize` have the first three.

/// A search or a check found something: a violation, a fault, a goal; or a difference from the expected contents of a table.
pub const FOUND: u8 = 1;
/// Error in the command line, an input, an output or the machine.
pub const ERROR: u8 = 2;
/// Stopped at a limit before everything was done, and nothing was found until then.
pub const INCOMPLETE: u8 = 3;
/// Stopped by Ctrl-C, or by SIGTERM in the same way: 128 plus the number of SIGINT, as in shells.
pub const INTERRUPTED: u8 = 130;

/// Text of `--help` about exit codes.
pub const HELP: &str = "\
Exit codes, the same for explore, decompose and replay:
  0    finished, and found nothing
  1    found something: a violation, a fault of the model or a goal (explore); a difference (replay --verify)
  2    an error in the command line, an input or the machine; or an output that could not be written at the end (with a report)
  3    stopped at a limit of time, memory or states before the end, and found nothing until then; or the table was full (replay)
  130  interrupted by Ctrl-C or SIGTERM, whatever was found, with a report of what was found until then, which takes at most
       5 s; a second signal, a second or more later, ends the program at once, without a report

With --json, standard output has exactly one object in every case, with `exit_code` and `error` (null, or the error as text).";
