//! Translates preprocessed CUDA C++ to C++: replaces words that no macro can replace.
//!
//! | CUDA | C++ |
//! |---|---|
//! | `__global__ void __launch_bounds__(128, 2) f(int n) { ... }` | `void f(int n) { ... }` and, behind it, an entry in the table of kernels |
//! | `__shared__ T name[4];` | `static __thread T name[4];` |
//! | `extern __shared__ T name[];` | `T* const name = ...;`, the block's dynamic shared memory |
//! | `asm("...")` | what the instructions of PTX do (`ptx.rs`) |
//! | `while (condition) {}` | `while (condition) { wait }`: other threads of the block go on meanwhile |
//!
//! Line breaks stay in place, so that the compiler's messages have the lines of the source.

use super::ptx;

/// Token of the text: a word, a number, a quoted text, a directive, or one character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub text: &'a str,
    start: usize,
}

impl Token<'_> {
    fn end(&self) -> usize {
        self.start + self.text.len()
    }

    fn is_word(&self) -> bool {
        self.text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_' || first == '$')
    }
}

/// Splits a preprocessed text, which has no comments, into tokens.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let (mut tokens, mut at, mut begins_line) = (Vec::new(), 0, true);
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'\n' => {
                begins_line = true;
                at += 1;
                continue;
            }
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'#' if begins_line => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
            }
            quote @ (b'"' | b'\'') => at = end_of_quoted(bytes, at + 1, quote),
            byte if is_of_word(byte) => {
                while at < bytes.len() && (is_of_word(bytes[at]) || (byte.is_ascii_digit() && is_of_number(bytes, at))) {
                    at += 1;
                }
                let word = &text[start..at];
                if bytes.get(at) == Some(&b'"') && ["R", "LR", "uR", "UR", "u8R"].contains(&word) {
                    at = end_of_raw(text, at);
                }
            }
            _ => at += text[at..].chars().next().map_or(1, char::len_utf8),
        }
        begins_line = false;
        tokens.push(Token { text: &text[start..at], start });
    }
    tokens
}

/// Joins tokens to one line, with a blank where the text has blanks between them.
pub(super) fn joined(tokens: &[Token<'_>]) -> String {
    let mut line = String::new();
    let mut end = None;
    for token in tokens.iter().filter(|token| !token.text.starts_with('#')) {
        if end.is_some_and(|end| end != token.start) {
            line.push(' ');
        }
        line.push_str(token.text);
        end = Some(token.end());
    }
    line
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

/// Whether the byte continues a number: a digit separator, a point, or the sign of an exponent.
fn is_of_number(bytes: &[u8], at: usize) -> bool {
    let behind_exponent = at > 0 && matches!(bytes[at - 1], b'e' | b'E' | b'p' | b'P');
    match bytes[at] {
        b'.' => true,
        b'\'' => bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric),
        b'+' | b'-' => behind_exponent && bytes.get(at + 1).is_some_and(u8::is_ascii_digit),
        _ => false,
    }
}

fn end_of_quoted(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while at < bytes.len() && bytes[at] != quote && bytes[at] != b'\n' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn end_of_raw(text: &str, quote: usize) -> usize {
    let Some(open) = text[quote..].find('(') else { return text.len() };
    let closing = format!("){}\"", &text[quote + 1..quote + open]);
    text[quote + open..].find(&closing).map_or(text.len(), |end| quote + open + end + closing.len())
}

/// A kernel whose body has not ended yet.
struct Kernel {
    name: String,
    bounds: String,
    depth: usize,
}

/// Returns the translation, or an error in NVRTC's form.
pub(super) fn translate(text: &str) -> Result<String, String> {
    let mut translator = Translator { text, tokens: tokens(text), at: 0, copied: 0, output: String::with_capacity(text.len()) };
    translator.all()?;
    translator.copy_to(text.len());
    Ok(translator.output)
}

struct Translator<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    /// Index of the next token.
    at: usize,
    /// Number of bytes of the text that are in the output or have been replaced.
    copied: usize,
    output: String,
}

impl<'a> Translator<'a> {
    fn all(&mut self) -> Result<(), String> {
        let mut depth = 0;
        let mut open: Vec<Kernel> = Vec::new();
        // State of a declaration: whether it has `__global__`, its launch bounds, and the name in front of its parameters.
        let (mut is_kernel, mut bounds, mut name) = (false, String::new(), None::<&str>);
        let mut parentheses = 0;
        // For each open brace, whether it belongs to a namespace or to `extern "C"`.
        let mut scopes: Vec<bool> = Vec::new();
        while let Some(token) = self.tokens.get(self.at).copied() {
            match token.text {
                "__global__" => {
                    is_kernel = true;
                    self.replace(self.at, self.at + 1, "");
                }
                "__launch_bounds__" | "__cluster_dims__" | "__maxnreg__" => {
                    let end = self.closing(self.at + 1)?;
                    if token.text == "__launch_bounds__" {
                        bounds = joined(&self.tokens[self.at + 2..end]);
                    }
                    self.replace(self.at, end + 1, "");
                    continue;
                }
                "__shared__" => {
                    self.shared(scopes.iter().all(|is_namespace| *is_namespace))?;
                    continue;
                }
                "asm" | "__asm__" => {
                    self.assembly()?;
                    continue;
                }
                "while" => self.waiting_loop(),
                "__attribute__" => {
                    self.at = self.closing(self.at + 1)? + 1;
                    continue;
                }
                "(" => {
                    if is_kernel && parentheses == 0 && name.is_none() {
                        name = self.at.checked_sub(1).map(|before| self.tokens[before].text);
                    }
                    parentheses += 1;
                }
                ")" => parentheses = usize::saturating_sub(parentheses, 1),
                "{" => {
                    if let (true, Some(name), 0) = (is_kernel, name, parentheses) {
                        open.push(Kernel { name: name.to_owned(), bounds: std::mem::take(&mut bounds), depth });
                        is_kernel = false;
                    }
                    scopes.push(self.opens_namespace());
                    (name, depth) = (None, depth + 1);
                }
                "}" => {
                    scopes.pop();
                    depth = usize::saturating_sub(depth, 1);
                    if let Some(kernel) = open.pop_if(|kernel| kernel.depth == depth) {
                        let Kernel { name, bounds, .. } = kernel;
                        self.copy_to(token.end());
                        let call = format!("::warpset_device::Call<&{name}>");
                        self.output.push_str(&format!(
                            " __attribute__((section(\"warpset_kernels\"), used)) static ::warpset_device::Entry \
                             warpset_device_entry_{name} = {{(const void*)&{name}, \".text.{name}\", &{call}::run, \
                             {call}::packing.count, {call}::packing.sizes, {call}::packing.offsets, {call}::packing.bytes, \
                             ::warpset_device::bounds({bounds}).threads, ::warpset_device::bounds({bounds}).blocks}};"
                        ));
                    }
                }
                // The declaration ends without a body.
                ";" if parentheses == 0 => {
                    (is_kernel, name) = (false, None);
                    bounds.clear();
                }
                _ => {}
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Whether the current token opens a namespace or a block of `extern "C"`.
    fn opens_namespace(&self) -> bool {
        let before = self.tokens[..self.at].iter().rev().take_while(|token| !"(){};=".contains(token.text));
        before.take(16).any(|token| token.text == "namespace" || token.text == "\"C\"")
    }

    fn copy_to(&mut self, end: usize) {
        self.output.push_str(&self.text[self.copied..end]);
        self.copied = end;
    }

    /// Replaces tokens, but keeps the line breaks between them. Continues after them, unless only one token is replaced.
    fn replace(&mut self, first: usize, end: usize, text: &str) {
        self.copy_to(self.tokens[first].start);
        let last = self.tokens[end - 1].end();
        self.output.push_str(text);
        let breaks = self.text[self.copied..last].matches('\n').count();
        self.output.extend(std::iter::repeat_n('\n', breaks));
        self.copied = last;
        if end > first + 1 {
            self.at = end;
        }
    }

    /// Returns the index of the bracket that closes the one at `open`.
    fn closing(&self, open: usize) -> Result<usize, String> {
        let mut depth = 0;
        for (at, token) in self.tokens.iter().enumerate().skip(open) {
            match token.text {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" if depth == 1 => return Ok(at),
                ")" | "]" | "}" => depth -= 1,
                _ if depth == 0 => break,
                _ => {}
            }
        }
        Err(self.error(open.saturating_sub(1), "expected brackets that close"))
    }

    /// Returns a message about a token, in NVRTC's form.
    fn error(&self, at: usize, what: &str) -> String {
        let place = self.tokens.get(at).map_or(self.text.len(), |token| token.start);
        let (mut file, mut line) = ("", 0usize);
        for each in self.text[..place].split('\n') {
            let marker = each.strip_prefix("# ").and_then(|marker| marker.split_once(' '));
            match marker.and_then(|(number, name)| Some((number.parse::<usize>().ok()?, name.split('"').nth(1)?))) {
                Some((number, name)) => (file, line) = (name, number.wrapping_sub(1)),
                None => line = line.wrapping_add(1),
            }
        }
        format!("{file}({line}): error: {what}\n")
    }

    /// Translates `__shared__`: to a variable of the thread that runs the block or, with `extern`, to the dynamic shared memory.
    fn shared(&mut self, is_outside: bool) -> Result<(), String> {
        let at = self.at;
        let is_extern = (at.saturating_sub(3)..at).rev().take_while(|before| !";{}".contains(self.tokens[*before].text));
        let Some(first) = is_extern.filter(|before| self.tokens[*before].text == "extern").last() else {
            // `static __shared__` equals `__shared__`.
            let is_static = at > 0 && self.tokens[at - 1].text == "static";
            self.replace(at, at + 1, if is_static { "__thread" } else { "static __thread" });
            self.at = at + 1;
            return Ok(());
        };
        if is_outside {
            return Err(self.error(at, "the simulated device knows extern __shared__ inside functions only"));
        }
        let mut end = at + 1;
        let mut words = Vec::new();
        while self.tokens.get(end).is_some_and(|token| token.text != "[" && token.text != ";") {
            if self.tokens[end].text == "__attribute__" {
                end = self.closing(end + 1)? + 1;
                continue;
            }
            words.push(self.tokens[end]);
            end += 1;
        }
        let Some(name) = words.pop().filter(|_| self.tokens.get(end).is_some_and(|token| token.text == "[")) else {
            return Err(self.error(at, "extern __shared__ declares an array without a length"));
        };
        let end = self.closing(end)? + 1;
        let (of, name) = (joined(&words), name.text);
        let text = format!("{of}* const {name} = reinterpret_cast<{of}*>(::warpset_device::dynamic_shared())");
        self.replace(first, end, &text);
        self.at = end;
        Ok(())
    }

    fn assembly(&mut self) -> Result<(), String> {
        let mut open = self.at + 1;
        while self.tokens.get(open).is_some_and(|token| token.is_word()) {
            open += 1;
        }
        let end = self.closing(open)?;
        // Split at colons into instructions, outputs, inputs, and clobbers.
        let mut parts = vec![Vec::new()];
        let mut depth = 0;
        for token in &self.tokens[open + 1..end] {
            match token.text {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                ":" if depth == 0 => {
                    parts.push(Vec::new());
                    continue;
                }
                _ => {}
            }
            if !token.text.starts_with('#') {
                parts.last_mut().expect("never empty").push(*token);
            }
        }
        let code = ptx::translate(&parts).map_err(|what| self.error(self.at, &what))?;
        self.replace(self.at, end + 1, &code);
        self.at = end + 1;
        Ok(())
    }

    /// Inserts a wait into a loop with an empty body, so that other threads of the block run.
    fn waiting_loop(&mut self) {
        let Ok(closing) = self.closing(self.at + 1) else { return };
        let is = |at: usize, text: &str| self.tokens.get(at).is_some_and(|token| token.text == text);
        if is(closing + 1, "{") && is(closing + 2, "}") {
            let open = self.tokens[closing + 1].end();
            self.copy_to(open);
            self.output.push_str(" ::warpset_device::wait(); ");
        }
    }
}
