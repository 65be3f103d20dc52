//! The program `tupelo`; everything is in the library, which the Python wheel calls too.

use std::process::exit;

fn main() {
    exit(tupelo_cli::main(std::env::args_os()));
}
