//! The option `--generate`: a man page, and completions for shells.

use anyhow::Result;
use clap::{Command, ValueEnum};
use clap_complete::Shell;
use std::ffi::OsString;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Generate {
    /// A man page in roff
    Man,
    CompleteBash,
    CompleteZsh,
    CompleteFish,
    CompletePowershell,
    CompleteElvish,
}

impl Generate {
    /// Returns the kind that the command line asks for: it must be `--generate KIND` or `--generate=KIND` and nothing else.
    /// `None` for other command lines, wrong ones included, which the parser handles.
    pub fn asked(arguments: &[OsString]) -> Option<Self> {
        let kind = match arguments {
            [_, option, kind] if option == "--generate" => kind.to_str()?,
            [_, joined] => joined.to_str()?.strip_prefix("--generate=")?,
            _ => return None,
        };
        Self::from_str(kind, false).ok()
    }

    /// The text for a program with this command line.
    pub fn text(self, mut command: Command) -> Result<String> {
        let mut text = Vec::new();
        let shell = match self {
            Self::Man => {
                clap_mangen::Man::new(command).render(&mut text)?;
                return Ok(String::from_utf8(text)?);
            }
            Self::CompleteBash => Shell::Bash,
            Self::CompleteZsh => Shell::Zsh,
            Self::CompleteFish => Shell::Fish,
            Self::CompletePowershell => Shell::PowerShell,
            Self::CompleteElvish => Shell::Elvish,
        };
        let name = command.get_name().to_string();
        clap_complete::generate(shell, &mut command, name, &mut text);
        Ok(String::from_utf8(text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    #[test]
    fn kinds_are_asked_for_alone() {
        let asked = |arguments: &[&str]| Generate::asked(&arguments.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(asked(&["explore", "--generate", "man"]), Some(Generate::Man));
        assert_eq!(asked(&["explore", "--generate=complete-zsh"]), Some(Generate::CompleteZsh));
        for other in [&["explore"][..], &["explore", "--generate"], &["explore", "--generate", "html"], &["explore", "man"]] {
            assert_eq!(asked(other), None, "{other:?}");
        }
        assert_eq!(asked(&["explore", "--generate", "man", "model.dve"]), None);
    }

    #[test]
    fn every_kind_names_every_option() {
        for kind in Generate::value_variants() {
            let command = Command::new("program").arg(Arg::new("seed").long("seed").help("Seed of the walks"));
            let text = kind.text(command).unwrap().replace("\\-", "-");
            assert!(text.contains("--seed") || text.contains("-l seed"), "{kind:?}: {text}");
            assert!(text.contains("program"), "{kind:?}: {text}");
        }
    }
}
