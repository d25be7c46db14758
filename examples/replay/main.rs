//! The program `replay`. Its code and its unit tests are in the library of this package, because Cargo does not run the unit
//! tests of an example that is built as a program.

fn main() -> std::process::ExitCode {
    warpset_replay::main()
}
