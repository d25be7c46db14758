//! The program `replay`. The library of this package does its work, and has unit tests, which Cargo does not run in an example
//! that is built as a program.

fn main() -> std::process::ExitCode {
    warpset_replay::main()
}
