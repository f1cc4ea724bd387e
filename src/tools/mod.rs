//! The four tools, and their table. Each file is one tool: a unit struct, its `impl Tool`, its tests.
//!
//! Four are enough: with bash and read a model finds everything, with write and edit it changes files in a way that a
//! person can look at first. Left out on purpose: grep, find and ls as tools of their own (bash runs them at once), and
//! deleting or moving files (bash asks).

mod bash;
mod change;
mod edit;
mod read;
mod write;

use crate::tool::{Json, Tool};

/// The tools that every agent has, in the order they are offered.
pub fn all() -> Vec<Box<dyn Tool>> {
    vec![Box::new(read::Read), Box::new(write::Write), Box::new(edit::Edit), Box::new(bash::Bash)]
}

/// A string argument; `fit` has made sure that a required one is there.
fn text<'a>(args: &'a Json, name: &str) -> &'a str {
    args[name].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Cancel;
    use crate::endpoint::{Endpoint, Settings};
    use crate::process::{Processes, environment};
    use crate::rundir::RunDir;
    use crate::setup::Setup;
    use crate::tool::{Check, Context, Failure, Question};
    use crate::workspace::Workspace;
    use std::path::PathBuf;

    /// A workspace and a context for trying a tool, gone when dropped.
    pub struct Bench {
        pub cx: Context,
        root: tempfile::TempDir,
        _state: tempfile::TempDir,
    }

    impl Bench {
        pub fn new() -> Bench {
            let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let workspace = Workspace::open(root.path(), RunDir::create(state.path()).unwrap()).unwrap();
            let endpoint =
                Endpoint::new(Settings { base_url: "http://127.0.0.1:9".into(), ..Settings::default() }).unwrap();
            let processes = Processes::new(environment(std::env::vars_os(), &[], &[]));
            let setup = Setup::new(workspace, endpoint, Cancel::new(), processes);
            let (_, mut cx) = setup.build().unwrap();
            cx.call = "c1".into();
            Bench { cx, root, _state: state }
        }

        /// Where a file of the workspace is.
        pub fn path(&self, name: &str) -> PathBuf {
            self.root.path().join(name)
        }

        /// Puts a file into the workspace.
        pub fn file(&self, name: &str, content: impl AsRef<[u8]>) {
            std::fs::write(self.path(name), content).unwrap();
        }

        /// Checks a call, says yes to a question, and acts.
        pub fn call(&mut self, tool: &mut dyn Tool, args: Json) -> Result<String, Failure> {
            match tool.check(&args, &mut self.cx) {
                Check::Run(act) | Check::Ask(_, act) => act(&mut self.cx),
                Check::Refuse(why) => Err(Failure::Blocked(why)),
                Check::Bad(why) => Err(Failure::Error(why)),
            }
        }

        /// The result of a call that asks nobody.
        #[track_caller]
        pub fn at_once(&mut self, tool: &mut dyn Tool, args: Json) -> Result<String, Failure> {
            let Check::Run(act) = tool.check(&args, &mut self.cx) else { panic!("does not run at once") };
            act(&mut self.cx)
        }
    }

    /// The question that a call asks.
    #[track_caller]
    pub fn asked(check: Check) -> Question {
        let Check::Ask(question, _) = check else { panic!("does not ask") };
        question
    }

    /// Why a call is refused.
    #[track_caller]
    pub fn refused(check: Check) -> String {
        let Check::Refuse(why) = check else { panic!("is not refused") };
        why
    }

    #[test]
    fn the_four_specs_are_short_and_flat() {
        let specs: Vec<Json> = all().iter().map(|tool| tool.spec().to_json()).collect();
        let offered = Json::from(specs.clone()).to_string();
        assert!(offered.len() <= 1_450, "{} bytes: {offered}", offered.len());
        for parameters in specs.iter().map(|spec| &spec["function"]["parameters"]) {
            let properties = parameters["properties"].as_object().unwrap();
            assert!(
                parameters["required"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|name| properties.contains_key(name.as_str().unwrap()))
            );
            for key in properties.values().flat_map(|property| property.as_object().unwrap().keys()) {
                assert!(key == "type" || key == "description", "{key}");
            }
        }
    }
}
