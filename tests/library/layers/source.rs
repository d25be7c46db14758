//! Parses the imports of Rust sources: tokens, modules, and the file that a path leads to.

use std::collections::BTreeMap;

/// Sources by their path below `src`: `core/table.rs`.
pub type Sources = BTreeMap<String, String>;

/// Words and signs of a source. Comments, texts and numbers are gone.
pub fn tokens(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let (mut tokens, mut at) = (Vec::new(), 0);
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    while at < bytes.len() {
        let rest = &text[at..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            at += rest.find("*/").map_or(rest.len(), |end| end + 2);
        } else if let Some(end) = raw_text(rest) {
            at += end;
        } else if rest.starts_with('"') {
            at += text_end(rest);
        } else if let Some(end) = character(rest) {
            at += end;
        } else if is_word(bytes[at]) {
            let end = rest.bytes().position(|byte| !is_word(byte)).unwrap_or(rest.len());
            tokens.push(rest[..end].to_string());
            at += end;
        } else if rest.starts_with("::") {
            tokens.push("::".into());
            at += 2;
        } else {
            let sign = rest.chars().next().expect("there is one more character");
            if !sign.is_whitespace() {
                tokens.push(sign.to_string());
            }
            at += sign.len_utf8();
        }
    }
    tokens
}

/// Bytes of a raw text (`r"..."`, `r#"..."#`) at the start, if there is one.
fn raw_text(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = body.bytes().take_while(|byte| *byte == b'#').count();
    if !body[hashes..].starts_with('"') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let start = rest.len() - body.len() + hashes + 1;
    Some(rest[start..].find(&end).map_or(rest.len(), |found| start + found + end.len()))
}

/// Bytes of a text that begins here.
fn text_end(rest: &str) -> usize {
    let mut escaped = false;
    for (at, sign) in rest.char_indices().skip(1) {
        match sign {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Bytes of a character in quotes at the start; none of a lifetime.
fn character(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix('\'')?;
    if let Some(escaped) = body.strip_prefix('\\') {
        return escaped.char_indices().skip(1).find(|(_, sign)| *sign == '\'').map(|(at, _)| at + 3);
    }
    let sign = body.chars().next()?;
    body[sign.len_utf8()..].starts_with('\'').then_some(sign.len_utf8() + 2)
}

/// The tokens without items that only tests have: those below an attribute `cfg(test)` or `cfg(all(test, ...))`. Also gives the
/// names of modules in other files that only tests have.
pub fn without_tests(tokens: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut kept, mut modules, mut at) = (Vec::new(), Vec::new(), 0);
    while at < tokens.len() {
        if tokens[at] == "#" && tokens.get(at + 1).is_some_and(|sign| sign == "[") {
            let end = matching(tokens, at + 1);
            let attribute = &tokens[at + 2..end];
            let is_cfg = attribute.first().is_some_and(|name| name == "cfg");
            if is_cfg
                && attribute.iter().any(|word| word == "test")
                && !attribute.iter().any(|word| word == "any" || word == "not")
            {
                let (item_end, module) = item(tokens, end + 1);
                modules.extend(module);
                at = item_end;
            } else {
                at = end + 1;
            }
            continue;
        }
        kept.push(tokens[at].clone());
        at += 1;
    }
    (kept, modules)
}

/// Where the bracket at `at` is closed.
fn matching(tokens: &[String], at: usize) -> usize {
    let mut depth = 0;
    for (place, token) in tokens.iter().enumerate().skip(at) {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth -= 1;
                if depth == 0 {
                    return place;
                }
            }
            _ => {}
        }
    }
    tokens.len() - 1
}

/// Behind the item that begins at `at`; and its name, if it is a module in another file.
fn item(tokens: &[String], mut at: usize) -> (usize, Option<String>) {
    let start = at;
    while at < tokens.len() {
        match tokens[at].as_str() {
            "(" | "[" => at = matching(tokens, at) + 1,
            "{" if tokens[start..at].iter().any(|word| word == "use") => at = matching(tokens, at) + 1,
            "{" => return (matching(tokens, at) + 1, None),
            ";" => {
                let module =
                    tokens[start..at].iter().position(|word| word == "mod").map(|place| tokens[start + place + 1].clone());
                return (at + 1, module);
            }
            _ => at += 1,
        }
    }
    (at, None)
}

/// A name that a file imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The name in this file; `_` of an import that is only for its methods.
    pub name: String,
    pub path: Vec<String>,
    pub is_public: bool,
}

/// References of a file to other files.
#[derive(Clone, Debug, Default)]
pub struct Module {
    pub file: String,
    /// Path below the crate: `["core", "table"]`.
    pub path: Vec<String>,
    pub children: Vec<String>,
    pub imports: Vec<Import>,
    /// Paths of two words or more in the code, outside imports.
    pub paths: Vec<Vec<String>>,
    /// All words of the code, outside imports.
    pub words: Vec<String>,
}

fn is_word(token: &str) -> bool {
    token.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}

/// Makes a path in modules within a file one of the file's own module.
fn leave_inline(path: &mut Vec<String>, depth: usize) {
    let supers = path.iter().take(depth).take_while(|word| *word == "super").count();
    if supers > 0 {
        path.splice(..supers, ["self".to_string()]);
    }
}

impl Module {
    fn read(file: &str, path: Vec<String>, tokens: &[String]) -> Self {
        let mut module = Self { file: file.into(), path, ..Self::default() };
        let mut at = 0;
        // Ends of the modules in this file that the place is in: `super` leads out of these first.
        let mut inline: Vec<usize> = Vec::new();
        while at < tokens.len() {
            inline.retain(|end| at < *end);
            if tokens[at] == "mod" && tokens.get(at + 2).is_some_and(|sign| sign == "{") {
                inline.push(matching(tokens, at + 2));
                at += 3;
            } else if tokens[at] == "use" {
                let end = at + tokens[at..].iter().position(|token| token == ";").unwrap_or(tokens.len() - at);
                let is_public = at > 0 && (tokens[at - 1] == "pub" || tokens[at - 1] == ")");
                let first = module.imports.len();
                module.read_use(&tokens[at + 1..end], &mut Vec::new(), is_public);
                module.imports[first..].iter_mut().for_each(|import| leave_inline(&mut import.path, inline.len()));
                at = end;
            } else if tokens[at] == "mod" && tokens.get(at + 2).is_some_and(|sign| sign == ";") {
                module.children.push(tokens[at + 1].clone());
                at += 2;
            } else if is_word(&tokens[at]) {
                let mut path = vec![tokens[at].clone()];
                while at + 2 < tokens.len() && tokens[at + 1] == "::" && is_word(&tokens[at + 2]) {
                    path.push(tokens[at + 2].clone());
                    at += 2;
                }
                module.words.push(path[0].clone());
                if path.len() > 1 {
                    leave_inline(&mut path, inline.len());
                    module.paths.push(path);
                }
                at += 1;
            } else {
                at += 1;
            }
        }
        module
    }

    /// Reads what is behind `use`, or one branch of a group.
    fn read_use(&mut self, tokens: &[String], before: &mut Vec<String>, is_public: bool) {
        let depth = before.len();
        let mut at = 0;
        while at < tokens.len() {
            match tokens[at].as_str() {
                "::" => at += 1,
                "{" => {
                    let end = matching(tokens, at);
                    let (mut first, mut level) = (at + 1, 0);
                    for place in at + 1..=end {
                        match tokens[place].as_str() {
                            "{" => level += 1,
                            "}" if place < end => level -= 1,
                            _ => {}
                        }
                        if place == end || (tokens[place] == "," && level == 0) {
                            self.read_use(&tokens[first..place], before, is_public);
                            first = place + 1;
                        }
                    }
                    before.truncate(depth);
                    return;
                }
                "as" => {
                    let path = self.own_path(before);
                    self.imports.push(Import { name: tokens[at + 1].clone(), path, is_public });
                    before.truncate(depth);
                    return;
                }
                word => {
                    before.push(word.to_string());
                    at += 1;
                }
            }
        }
        if before.len() > depth {
            let path = self.own_path(before);
            if let Some(name) = path.last().cloned() {
                self.imports.push(Import { name, path, is_public });
            }
        }
        before.truncate(depth);
    }

    /// The path without a last `self`: in a group, `self` stands for the path before the group.
    fn own_path(&self, path: &[String]) -> Vec<String> {
        let is_group = path.len() > 1 && path.last().is_some_and(|word| word == "self");
        path[..path.len() - usize::from(is_group)].to_vec()
    }
}

/// The modules of a crate, without those that only tests have.
pub struct Crate {
    pub modules: Vec<Module>,
}

impl Crate {
    pub fn read(sources: &Sources) -> Self {
        let mut modules = Vec::new();
        let mut open = vec![("lib.rs".to_string(), Vec::new())];
        while let Some((file, path)) = open.pop() {
            let Some(text) = sources.get(&file) else { continue };
            let (tokens, tests) = without_tests(&tokens(text));
            let mut module = Module::read(&file, path, &tokens);
            module.children.retain(|child| !tests.contains(child));
            // Children of `a/mod.rs` are below `a/`, those of `a/b.rs` below `a/b/`.
            let folder = module.path.join("/") + if module.path.is_empty() { "" } else { "/" };
            module.children.retain(|child| {
                let places = [format!("{folder}{child}.rs"), format!("{folder}{child}/mod.rs")];
                let found = places.into_iter().find(|place| sources.contains_key(place));
                let child_path = [&module.path[..], std::slice::from_ref(child)].concat();
                found.map(|place| open.push((place, child_path))).is_some()
            });
            modules.push(module);
        }
        Self { modules }
    }

    fn module(&self, path: &[String]) -> Option<&Module> {
        self.modules.iter().find(|module| module.path == path)
    }

    /// The file in which the path leads to an item, as it is written in a module; none if it leads out of the crate.
    pub fn resolve(&self, from: &Module, path: &[String]) -> Option<String> {
        self.follow(from, path, 0).map(|(module, _)| module.file.clone())
    }

    /// The module in which a path ends, and whether it is a name of the module itself.
    fn follow<'a>(&'a self, from: &'a Module, path: &[String], depth: usize) -> Option<(&'a Module, bool)> {
        if depth > 20 {
            return None;
        }
        let (mut at, mut rest) = match path.first()?.as_str() {
            "crate" => (self.module(&[])?, &path[1..]),
            "self" => (from, &path[1..]),
            "super" => (self.module(from.path.split_last()?.1)?, &path[1..]),
            _ => (from, path),
        };
        let mut is_first = true;
        while let Some((word, others)) = rest.split_first() {
            if word == "super" {
                at = self.module(at.path.split_last()?.1)?;
            } else if at.children.contains(word) {
                at = self.module(&[&at.path[..], std::slice::from_ref(word)].concat())?;
            } else if let Some(import) = at.imports.iter().find(|import| import.name == *word && import.path != path) {
                let target = self.follow(at, &import.path, depth + 1);
                match target {
                    Some((module, true)) => at = module,
                    other => return other,
                }
            } else if is_first && rest.len() == path.len() {
                // Neither a module nor an import: another crate, or an item of this file.
                return None;
            } else {
                return Some((at, false));
            }
            is_first = false;
            rest = others;
        }
        Some((at, true))
    }

    /// Each file that a module imports from, with the path by which it does.
    pub fn arrows(&self, module: &Module) -> Vec<(String, String)> {
        let is_folder = module.file.ends_with("mod.rs") || module.file == "lib.rs";
        // A folder's public re-export that its own file does not use is not counted as an import.
        let only_shown = |import: &&Import| !(is_folder && import.is_public && !module.words.contains(&import.name));
        let imports = module.imports.iter().filter(only_shown).map(|import| &import.path);
        let mut arrows = Vec::new();
        for path in imports.chain(&module.paths) {
            if let Some(file) = self.resolve(module, path)
                && file != module.file
            {
                arrows.push((file, path.join("::")));
            }
        }
        arrows
    }
}
