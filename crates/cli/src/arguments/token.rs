//! What `tupelo token` is given.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tupelo_server::rights::{ROLES, Rule};

use super::HELP;

#[derive(Args)]
#[command(
    about = "Give other programs tokens for a server, with what each may do.",
    before_help = "\
Examples:
  tupelo token add ci --tokens tokens.toml --role writer
  tupelo token add gpu --tokens tokens.toml --rule 'jobs : take (\"job\", \"gpu\", _)' --rule 'results : put'
  tupelo token list --tokens tokens.toml
  tupelo token remove ci --tokens tokens.toml
  tupelo serve --listen tls://0.0.0.0:7668 --certificate hub.pem --key hub.key --tokens tokens.toml

`add` prints the token once: the file keeps only its hash. A server reads its file at the start, and at SIGHUP.",
    help_template = HELP
)]
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

#[derive(Subcommand)]
pub(crate) enum TokenCommand {
    /// Add a token, and print it
    Add(TokenAdd),
    /// Show the names and rules of all tokens
    List {
        #[command(flatten)]
        file: TokenFile,
    },
    /// Remove a token
    Remove {
        /// The name of the token
        name: String,
        #[command(flatten)]
        file: TokenFile,
    },
}

#[derive(Args)]
pub(crate) struct TokenFile {
    /// The file of tokens
    #[arg(long, value_name = "PATH", default_value = "tokens.toml")]
    pub(crate) tokens: PathBuf,
}

#[derive(Args)]
pub(crate) struct TokenAdd {
    /// The name of the token: up to 64 of a to z, 0 to 9 and -
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) file: TokenFile,
    /// What its holder may do; may be given several times
    #[arg(long = "rule", value_name = "RULE", required_unless_present = "role", value_parser = rule)]
    pub(crate) rules: Vec<Rule>,
    /// What its holder may do in all spaces: reader, writer or admin
    #[arg(long, value_name = "ROLE", value_parser = role)]
    pub(crate) role: Option<Rule>,
}

fn rule(text: &str) -> Result<Rule, String> {
    text.parse()
}

fn role(name: &str) -> Result<Rule, String> {
    let known = ROLES.iter().find(|(known, _)| *known == name);
    let (_, rule) = known.ok_or_else(|| "give reader, writer or admin".to_owned())?;
    rule.parse()
}
