//! Decides whether a CUDA C++ source depends on files that are not headers of this library.
//!
//! A kernel that is kept on disk stands for its source. If the source includes a file, the file may change and the source stays
//! the same, so such kernels are not kept. A wrong "no" runs a stale kernel; a wrong "yes" only compiles again. So whatever this
//! cannot decide counts as including.
//!
//! The source is read as phases 1 to 4 of translation read it: lines that end in a backslash are joined, comments and literals
//! (raw ones too) are skipped, and then every identifier about inclusion counts, unless it is the directive `#include` of one of
//! our headers. Where compilers differ (trigraphs, blanks behind a backslash at the end of a line, a carriage return alone), the
//! source counts as including.

/// Whether a source may depend on a file other than the headers for which `is_ours`.
pub(super) fn includes_files(source: &str, is_ours: impl Fn(&str) -> bool) -> bool {
    let text = source.strip_prefix('\u{feff}').unwrap_or(source).replace("\r\n", "\n");
    is_undecidable(&text) || Reader { text: text.as_bytes(), at: 0 }.finds_inclusion(&is_ours)
}

/// Words of directives and pragmas that name files.
const WORDS: [&str; 4] = ["include", "embed", "import", "dependency"];

/// Parts of the names of the conditions that test for files: `__has_include` and `__has_embed`.
const CONDITIONS: [&str; 2] = ["has_include", "has_embed"];

fn has_any(words: &[&str], text: &[u8]) -> bool {
    words.iter().any(|word| text.windows(word.len()).any(|part| part == word.as_bytes()))
}

/// Whether compilers may disagree about where lines and comments end.
fn is_undecidable(text: &str) -> bool {
    // Trigraphs of `#` and of the backslash, which C++17 no longer has.
    let has_trigraphs = text.contains("??=") || text.contains("??/");
    let is_line_joined_or_not = |line: &str| {
        let end = line.trim_end_matches([' ', '\t', '\x0b', '\x0c']);
        end.len() < line.len() && end.ends_with('\\')
    };
    has_trigraphs || text.contains('\r') || text.split('\n').any(is_line_joined_or_not)
}

/// A token, as far as inclusion depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// `#` or `%:`.
    Hash,
    /// `##` or `%:%:`.
    Paste,
    Identifier(Vec<u8>),
    /// Text between the quotes of a string or character literal.
    Literal(Vec<u8>),
    RawString(Vec<u8>),
    /// Number or other character.
    Other,
}

struct Reader<'a> {
    text: &'a [u8],
    /// Position of the next byte. Joined lines are skipped when a byte is read.
    at: usize,
}

impl Reader<'_> {
    fn finds_inclusion(mut self, is_ours: &dyn Fn(&str) -> bool) -> bool {
        let mut before = Token::Other;
        // A macro that pastes tokens can make `__has_include` for a condition, and a pragma may name a file.
        let (mut pastes, mut has_condition, mut has_pragma_operator, mut names_files) = (false, false, false, false);
        while let Some(token) = self.token() {
            match &token {
                Token::Identifier(name) if before == Token::Hash && name == b"include" => {
                    if !self.header_name().is_some_and(|name| is_ours(&name)) {
                        return true;
                    }
                }
                // `#include_next`, `#import`, `#embed`.
                Token::Identifier(name) if before == Token::Hash && has_any(&WORDS, name) => return true,
                Token::Identifier(name) if has_any(&CONDITIONS, name) => return true,
                Token::Identifier(name) if before == Token::Hash && name == b"pragma" => {
                    if has_any(&WORDS, &self.rest_of_line()) {
                        return true;
                    }
                }
                Token::Identifier(name) => {
                    has_condition |= before == Token::Hash && [&b"if"[..], b"elif"].contains(&&name[..]);
                    has_pragma_operator |= [&b"_Pragma"[..], b"__pragma"].contains(&&name[..]);
                    names_files |= has_any(&WORDS, name);
                }
                Token::Literal(text) => names_files |= has_any(&WORDS, text),
                // A compiler that skips a group need not know raw strings in it.
                Token::RawString(text) if has_any(&WORDS, text) => return true,
                Token::Paste => pastes = true,
                Token::RawString(_) | Token::Hash | Token::Other => {}
            }
            before = token;
        }
        pastes && (has_condition || has_pragma_operator) || has_pragma_operator && names_files
    }

    /// The byte `ahead` bytes after the next one, and the position after it, if lines that end in a backslash are joined.
    fn peek(&self, ahead: usize) -> Option<(u8, usize)> {
        let mut at = self.at;
        for left in (0..=ahead).rev() {
            while self.text[at.min(self.text.len())..].starts_with(b"\\\n") {
                at += 2;
            }
            let byte = *self.text.get(at)?;
            at += 1;
            if left == 0 {
                return Some((byte, at));
            }
        }
        None
    }

    fn next(&mut self) -> Option<u8> {
        let (byte, after) = self.peek(0)?;
        self.at = after;
        Some(byte)
    }

    fn next_if(&mut self, wanted: impl Fn(u8) -> bool) -> Option<u8> {
        let (byte, after) = self.peek(0).filter(|(byte, _)| wanted(*byte))?;
        self.at = after;
        Some(byte)
    }

    fn starts_with(&self, text: &[u8]) -> bool {
        text.iter().enumerate().all(|(ahead, byte)| self.peek(ahead).is_some_and(|(found, _)| found == *byte))
    }

    /// Skips a text if it comes next: whether it does.
    fn skip(&mut self, text: &[u8]) -> bool {
        let comes = self.starts_with(text);
        if comes {
            text.iter().for_each(|_| _ = self.next());
        }
        comes
    }

    /// Skips blanks and comments; newlines too, if these may be skipped.
    fn skip_blanks(&mut self, newlines: bool) {
        loop {
            if self.skip(b"//") {
                while self.next_if(|byte| byte != b'\n').is_some() {}
            } else if self.skip(b"/*") {
                while !self.skip(b"*/") && self.next().is_some() {}
            } else if self.next_if(|byte| byte.is_ascii_whitespace() && (newlines || byte != b'\n') || byte == 0x0b).is_none() {
                return;
            }
        }
    }

    /// Returns the unread part of the line.
    fn rest_of_line(&self) -> Vec<u8> {
        let mut ahead = Reader { ..*self };
        std::iter::from_fn(|| ahead.next_if(|byte| byte != b'\n')).collect()
    }

    fn token(&mut self) -> Option<Token> {
        self.skip_blanks(true);
        if self.skip(b"##") || self.skip(b"%:%:") {
            return Some(Token::Paste);
        }
        if self.skip(b"#") || self.skip(b"%:") {
            return Some(Token::Hash);
        }
        let first = self.next()?;
        Some(match first {
            b'"' | b'\'' => Token::Literal(self.literal(first)),
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(0).is_some_and(|(byte, _)| byte.is_ascii_digit()) => self.number(),
            _ if is_in_identifier(first) => {
                let mut name = vec![first];
                name.extend(std::iter::from_fn(|| self.next_if(is_in_identifier)));
                let is_raw = [&b"R"[..], b"LR", b"uR", b"UR", b"u8R"].contains(&&name[..]);
                match is_raw && self.skip(b"\"") {
                    true => Token::RawString(self.raw_string()),
                    false => Token::Identifier(name),
                }
            }
            _ => Token::Other,
        })
    }

    /// Skips the remainder of a number, in which quotes separate digits.
    fn number(&mut self) -> Token {
        loop {
            if self.next_if(|byte| b"eEpP".contains(&byte)).is_some() {
                self.next_if(|byte| b"+-".contains(&byte));
            } else if self.starts_with(b"'") && self.peek(1).is_some_and(|(byte, _)| is_in_identifier(byte)) {
                self.next();
            } else if self.next_if(|byte| is_in_identifier(byte) || byte == b'.').is_none() {
                return Token::Other;
            }
        }
    }

    /// Returns the remainder of a literal up to `quote`, or to the end of the line, where a literal ends at the latest.
    fn literal(&mut self, quote: u8) -> Vec<u8> {
        let mut text = Vec::new();
        while let Some(byte) = self.next_if(|byte| byte != b'\n') {
            match byte {
                _ if byte == quote => break,
                b'\\' => _ = self.next_if(|byte| byte != b'\n'),
                _ => text.push(byte),
            }
        }
        text
    }

    /// Returns the remainder of a raw string, whose lines are not joined: its delimiter and its text. Without an end, that is all
    /// the text that is left.
    fn raw_string(&mut self) -> Vec<u8> {
        let left = &self.text[self.at..];
        let opened = left.iter().position(|byte| *byte == b'(').unwrap_or(left.len());
        let end = [b")", &left[..opened], b"\""].concat();
        let length =
            left[opened..].windows(end.len()).position(|part| part == end).map_or(left.len(), |at| opened + at + end.len());
        self.at += length;
        left[..length].to_vec()
    }

    /// The name of a header in quotes or angle brackets, if that and nothing else follows on the line.
    fn header_name(&mut self) -> Option<String> {
        self.skip_blanks(false);
        let end = match self.next_if(|byte| byte == b'"' || byte == b'<')? {
            b'<' => b'>',
            quote => quote,
        };
        let name = std::iter::from_fn(|| self.next_if(|byte| byte != end && byte != b'\n')).collect();
        self.next_if(|byte| byte == end)?;
        self.skip_blanks(false);
        let ends = self.peek(0).is_none_or(|(byte, _)| byte == b'\n');
        String::from_utf8(name).ok().filter(|_| ends)
    }
}

fn is_in_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    //! Keeps this promise of `src/docs/host_batches.md`:
    //!
    //! - A kernel whose source may depend on a file is not kept, whatever the spelling (also `nvrtc.rs`).

    use super::*;

    fn includes(source: &str) -> bool {
        includes_files(source, |name| name == "warpset/table.cuh")
    }

    #[test]
    fn our_headers_alone_are_no_files() {
        for source in [
            "",
            "#include \"warpset/table.cuh\"",
            "#include \"warpset/table.cuh\" // why\nint a;",
            "/* first */ # /* second */ include /* third */ <warpset/table.cuh> /* and\n on */",
            "%:include <warpset/table.cuh>",
            "#inc\\\nlude \"warpset/\\\ntable.cuh\"\r\nint a;",
            "\u{feff}#include \"warpset/table.cuh\"",
            "// #include \"mine.cuh\"",
            "// on \\\n#include \"mine.cuh\"",
            "/*\n#include \"mine.cuh\"\n*/",
            "/* // */ int a;",
            "const char* a = \"\\n#include \\\"mine.cuh\\\"\";",
            "const char* a = \"/*\"; // */\n",
            "const char* a = R\"x(\\\n)\" )x\";",
            "int include, important, embedded;",
            "int a = 1'000'000; int b = 0x1'f; double c = 1e+5, d = 0x1p-3, e = .5'5;",
            "char a = '\\'', b = '\"';",
            "#pragma unroll\nint a = 7 % 3;",
            "_Pragma(\"unroll\") int a;",
            "#define JOIN(a, b) a ## b\n#ifdef JOIN\n#else\n#endif",
            "#define TEXT(a) #a\n#if 1\n#error \"don't\"\n#endif",
            "don't\n\"unfinished\n",
            "R\"(",
        ] {
            assert!(!includes(source), "{source}");
        }
    }

    #[test]
    fn files_are_found_however_they_are_written() {
        for source in [
            "#include \"mine.cuh\"",
            "#include <mine.cuh>",
            "#include MINE",
            "#include",
            "#include \"warpset/table.cuh",
            "#include \"warpset/table.cuh\" \"mine.cuh\"",
            "int x;\n\t# include<mine.cuh>",
            "/* x */ #include \"mine.cuh\"",
            "# /**/ include \"mine.cuh\"",
            "#/*\n*/include \"mine.cuh\"",
            "/*\n*/ #include \"mine.cuh\"",
            "/* // */ #include \"mine.cuh\"",
            "/* \"*/ #include \"mine.cuh\"",
            "// /*\n#include \"mine.cuh\"\n// */",
            "%:include \"mine.cuh\"",
            "#\\\ninclude \"mine.cuh\"",
            "#in\\\ncl\\\n\\\nude \"mine.cuh\"",
            "/\\\n* x *\\\n/ #include \"mine.cuh\"",
            "#include \\\n\"mine.cuh\"",
            "#inc\\\r\nlude \"mine.cuh\"",
            "\u{feff}#include \"mine.cuh\"",
            "\x0b\x0c#include \"mine.cuh\"",
            "const char* a = \"/*\";\n#include \"mine.cuh\"\n// */",
            "const char a = '\"';\n#include \"mine.cuh\"\n// \"",
            "int a = 1'0;\n#include \"mine.cuh\"\n// '",
            "int a = 1'0 /* ' */;\n#include \"mine.cuh\"\n",
            "don't /*\n#include \"mine.cuh\"\n*/",
            "const char* a = R\"(\"; /* )\";\n#include \"mine.cuh\"\n// */",
            "const char* a = R\"x(/*)x\";\n#include \"mine.cuh\"\n// */",
            "const char* a = u8R\"(\\)\";\n#include \"mine.cuh\"\n// \"",
            "const char* a = notR\"(\";\n#include \"mine.cuh\"\n// )\"",
            "#if 0\nR\"(\n#endif\n#include \"mine.cuh\"\n// )\"",
            "#pragma unroll /*\n// */\n#include \"mine.cuh\"",
            "#include_next \"mine.cuh\"",
            "#import \"mine.cuh\"",
            "const char a[] = {\n#embed \"mine.bin\"\n};",
            "#if __has_include(\"mine.cuh\")\n#endif",
            "#define H __has_include\n#if H(\"mine.cuh\")\n#endif",
            "#define H(a) __has_inc ## a\n#if H(lude)(\"mine.cuh\")\n#endif",
            "%:define H(a) __has_inc%:%:a\n%:if H(lude)(\"mine.cuh\")\n%:endif",
            "#pragma include_alias(\"warpset/table.cuh\", \"mine.cuh\")",
            "#pragma GCC dependency \"mine.cuh\"",
            "_Pragma(\"include_alias(\\\"warpset/table.cuh\\\", \\\"mine.cuh\\\")\")",
            "#define P(a) _Pragma(#a)\nP(include_alias(\"warpset/table.cuh\", \"mine.cuh\"))",
            "#define P(a, b) _Pragma(#a #b)\n#define Q(a, b) a ## b",
            // Compilers differ.
            "??=include \"mine.cuh\"",
            "// on or not??/\n#include \"mine.cuh\"",
            "// on or not \\ \n#include \"mine.cuh\"",
            "// a line of its own?\r#include \"mine.cuh\"",
        ] {
            assert!(includes(source), "{source}");
        }
    }

    /// Pieces of sources in every order: none panics, and `#include` of a file on the last line is found whatever the lines
    /// before, unless these leave a comment or a raw string open.
    #[test]
    fn a_last_line_is_found_behind_any_text() {
        const PIECES: [&str; 14] = ["/*", "*/", "//", "\"", "'", "R\"(", ")\"", "\\", "\n", "#", "%:", "1'0", " ", "\\\n"];
        for mut number in 0..PIECES.len().pow(4) {
            let mut text = String::new();
            for _ in 0..4 {
                text += PIECES[number % PIECES.len()];
                number /= PIECES.len();
            }
            let source = format!("{text}\n#include \"mine.cuh\"\n");
            let joined = text.replace("\\\n", "");
            let may_be_open = joined.contains("/*") || joined.contains("R\"(") || text.ends_with('\\');
            assert!(includes(&source) || may_be_open, "{source}");
        }
    }
}
