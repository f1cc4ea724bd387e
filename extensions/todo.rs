//! A list of steps that the model cannot forget.
//!
//! A model that works for long loses its plan: what it wrote forty messages ago has little weight, and compaction may
//! have made a summary of it. So the list is kept outside the conversation. The tool `todo` replaces it as a whole, and
//! the system text shows it, as it stands, in every request.
//!
//! An item is a text with a box in front: `[ ]` to do, `[>]` at work, `[x]` done. Changing the list changes nothing else,
//! so it needs no approval and works in plan mode. `/new` begins with an empty list.
//!
//! Left out: items as objects with a status (exercise B of the lab), tools for single items (a model that sends the
//! whole list cannot lose count), and a file (the list is of this conversation; what shall outlive it is a memory).

use mini::extension::Extension;
use mini::setup::Setup;
use mini::tool::{Act, Check, Context, Json, Spec, Tool};
use serde_json::json;
use std::cell::RefCell;
use std::rc::Rc;

/// Items of a list, and characters of an item: it goes along with every request.
const MOST_ITEMS: usize = 30;
const MOST_TEXT: usize = 200;

/// Attaches the extension; it takes no argument.
pub fn attach(setup: &mut Setup, arg: Option<&str>) -> Result<(), String> {
    if let Some(arg) = arg {
        return Err(format!("it takes no argument, and got {arg:?}"));
    }
    setup.extensions.push(Box::new(Todo::default()));
    Ok(())
}

/// The list, each item with its box. The tool writes it, the system text shows it.
type List = Rc<RefCell<Vec<String>>>;

/// The extension.
#[derive(Default)]
struct Todo {
    list: List,
}

impl Extension for Todo {
    fn name(&self) -> &str {
        "todo"
    }

    fn tools(&mut self) -> Result<Vec<Box<dyn Tool>>, String> {
        Ok(vec![Box::new(Keep { list: Rc::clone(&self.list) })])
    }

    fn system_prompt(&mut self) -> String {
        match self.list.borrow().as_slice() {
            [] => "For a task of three steps or more keep a list with todo.".into(),
            list => format!("Your list of steps, as it stands (todo changes it):\n{}", list.join("\n")),
        }
    }
}

/// The tool.
struct Keep {
    list: List,
}

impl Tool for Keep {
    fn spec(&self) -> Spec {
        let items = json!({"type": "array", "items": {"type": "string"}, "description": "all items, in order"});
        Spec {
            name: "todo".into(),
            description: "Replace your list of steps. Each item begins with [ ] to do, [>] at work or [x] done.".into(),
            parameters: json!({"type": "object", "required": ["items"], "properties": {"items": items}}),
            read_only: true,
        }
    }

    fn check<'a>(&'a mut self, args: &Json, _: &mut Context) -> Check<'a> {
        match items(args["items"].as_array().map_or(&[], Vec::as_slice)) {
            Ok(items) => Check::Run(self.keep(items)),
            Err(why) => Check::Bad(why),
        }
    }
}

impl Keep {
    fn keep(&self, items: Vec<String>) -> Act<'_> {
        Box::new(move |_| {
            let done = items.iter().filter(|item| item.starts_with("[x]")).count();
            let text = format!("{done} of {} done", items.len());
            *self.list.borrow_mut() = items;
            Ok(text)
        })
    }
}

/// The items, each with its box; the error names the first that cannot be used.
fn items(values: &[Json]) -> Result<Vec<String>, String> {
    if values.len() > MOST_ITEMS {
        return Err(format!("{} items; a list has at most {MOST_ITEMS}", values.len()));
    }
    values.iter().zip(1..).map(|(value, number)| item(value).map_err(|why| format!("item {number} {why}"))).collect()
}

/// One item on one line. Without a box it is to be done.
fn item(value: &Json) -> Result<String, String> {
    let text = value.as_str().ok_or_else(|| format!("must be a text such as \"[ ] run the test\", not {value}"))?;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (sign, words) = match ["[ ]", "[>]", "[x]", "[X]"].into_iter().find(|sign| text.starts_with(sign)) {
        Some(sign) => (sign, text[sign.len()..].trim_start()),
        None => ("[ ]", text.as_str()),
    };
    match words.chars().count() {
        0 => Err("has no text".into()),
        n if n > MOST_TEXT => Err(format!("has {n} characters; at most {MOST_TEXT}")),
        _ => Ok(format!("{} {words}", sign.to_lowercase())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(items: Json) -> Result<Vec<String>, String> {
        super::items(items.as_array().expect("a list"))
    }

    #[test]
    fn an_item_is_one_line_with_a_box() {
        let items = json!(["[ ] read", "[>]  run\nthe test", "[X] done", "no box"]);
        assert_eq!(
            kept(items),
            Ok(["[ ] read", "[>] run the test", "[x] done", "[ ] no box"].map(String::from).to_vec())
        );
        assert_eq!(kept(json!([])), Ok(vec![]));
    }

    #[test]
    fn what_cannot_be_an_item_is_named() {
        let rows = [
            (
                json!(["a", {"content": "b"}]),
                "item 2 must be a text such as \"[ ] run the test\", not {\"content\":\"b\"}",
            ),
            (json!(["[x]"]), "item 1 has no text"),
            (json!(["x".repeat(201)]), "item 1 has 201 characters; at most 200"),
        ];
        for (items, wanted) in rows {
            assert_eq!(kept(items), Err(wanted.to_owned()));
        }
        assert!(kept(json!(vec!["a"; 31])).is_err_and(|why| why.starts_with("31 items")));
    }

    mod solution {
        use super::Json;

        include!("../labs/12-plan-todo/solution/objects.rs");

        #[test]
        fn the_solution_of_the_lab_takes_objects_and_guesses_nothing() {
            let item = |content: &str, status: &str| object(&serde_json::json!({"content": content, "status": status}));
            assert_eq!(item("run", "in_progress"), Ok("[>] run".into()));
            assert_eq!(object(&serde_json::json!({"title": "run"})), Ok("[ ] run".into()));
            assert!(item("run", "someday").is_err_and(|why| why.contains("someday")));
            assert!(object(&serde_json::json!(7)).is_err());
        }
    }

    #[test]
    fn the_system_text_shows_the_list_as_it_stands() {
        let mut todo = Todo::default();
        assert!(todo.system_prompt().contains("keep a list with todo"));
        todo.list.borrow_mut().push("[>] run the test".into());
        assert!(todo.system_prompt().ends_with(":\n[>] run the test"));
    }
}
