//! The `hundi` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    hundi::cli::main()
}
