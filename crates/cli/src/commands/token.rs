//! `tupelo token`: the right to connect to a server, and its limits.

use serde_json::json;
use tupelo_server::rights;

use crate::arguments::{Token, TokenAdd, TokenCommand};
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn run(options: Token, output: &mut Output) -> Result<(), Failure> {
    match options.command {
        TokenCommand::Add(TokenAdd { name, file, mut rules, role }) => {
            rules.extend(role);
            let token = rights::add(&file.tokens, &name, &rules)?;
            if output.json {
                output.object(&json!({ "name": name, "token": token }))
            } else {
                output.line(&token)
            }
        }
        TokenCommand::List { file } => {
            for (name, rules) in rights::list(&file.tokens)? {
                if output.json {
                    output.object(&json!({ "name": name, "rules": rules }))?;
                } else {
                    output.line(format!("{name}\t{}", rules.join("; ")))?;
                }
            }
            Ok(())
        }
        TokenCommand::Remove { name, file } => Ok(rights::remove(&file.tokens, &name)?),
    }
}
