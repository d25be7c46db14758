//! Translates inline PTX to C++: the few instructions that the kernels of this repository use. Any other instruction is a
//! compilation error.

use super::translation::{Token, joined};

/// Returns C++ for an `asm` statement. `parts` are its instructions, outputs, inputs, and clobbers.
pub(super) fn translate(parts: &[Vec<Token<'_>>]) -> Result<String, String> {
    let text: String = parts[0].iter().map(|token| token.text.trim_matches('"')).collect();
    let text = text.replace("\\n", " ").replace("\\t", " ").replace("%%", "%");
    let operands: Vec<String> = parts.iter().skip(1).take(2).flat_map(|part| expressions(part)).collect();
    let mut code = String::new();
    for instruction in text.split(';').map(str::trim).filter(|instruction| !instruction.is_empty()) {
        let unknown = || format!("the simulated device does not know the PTX instruction \"{instruction}\"");
        let (name, rest) = instruction.split_once(' ').unwrap_or((instruction, ""));
        let names: Vec<&str> = rest.split(',').map(|operand| operand.trim().trim_matches(['[', ']'])).collect();
        let operand = |at: usize| {
            let number: Option<usize> =
                names.get(at).and_then(|name| name.strip_prefix('%')).and_then(|number| number.parse().ok());
            number.and_then(|number| operands.get(number)).map(|text| format!("({text})")).ok_or_else(unknown)
        };
        let base = name.split('.').next().unwrap_or(name);
        let statement = match (base, names.as_slice()) {
            ("prefetch" | "prefetchu" | "discard", _) => String::new(),
            ("fence" | "membar", _) => "__threadfence()".into(),
            ("mov", [_, "%globaltimer"]) => format!("{} = ::warpset_device::runtime->nanoseconds()", operand(0)?),
            ("mov", [_, "%clock64"]) => format!("{} = clock64()", operand(0)?),
            ("mov", [_, "%laneid"]) => format!("{} = ::warpset_device::lane()->number", operand(0)?),
            ("mov", [_, "%smid"]) => format!("{} = 0", operand(0)?),
            ("ld", [_, _]) if is_scalar(name) => format!("{} = ::warpset_device::load({})", operand(0)?, operand(1)?),
            ("st", [_, _]) if is_scalar(name) => format!("::warpset_device::store({}, {})", operand(0)?, operand(1)?),
            ("atom", [_, _, _, _]) if name.contains(".cas.") && is_scalar(name) => {
                format!("{} = atomicCAS({}, {}, {})", operand(0)?, operand(1)?, operand(2)?, operand(3)?)
            }
            ("atom", [_, _, _]) if name.contains(".add.") => {
                format!("{} = atomicAdd({}, {})", operand(0)?, operand(1)?, operand(2)?)
            }
            ("red", [_, _]) if name.contains(".add.") => format!("atomicAdd({}, {})", operand(0)?, operand(1)?),
            ("red", [_, _]) if name.contains(".max.") => format!("atomicMax({}, {})", operand(0)?, operand(1)?),
            _ => return Err(unknown()),
        };
        code.push_str(&statement);
        code.push_str("; ");
    }
    Ok(format!("do {{ {code}}} while (false)"))
}

/// Whether an instruction operates on one word of 4 or 8 bytes.
fn is_scalar(name: &str) -> bool {
    let kind = name.rsplit('.').next().unwrap_or("");
    matches!(kind, "b32" | "u32" | "s32" | "b64" | "u64" | "s64") && !name.contains(".v2.") && !name.contains(".v4.")
}

/// Returns the expressions in a list such as `"=r"(a), "l"(b)`.
fn expressions(part: &[Token<'_>]) -> Vec<String> {
    let (mut found, mut depth) = (Vec::new(), 0);
    let mut words: Vec<Token<'_>> = Vec::new();
    for token in part {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        match (token.text, depth) {
            ("(", 1) => words.clear(),
            (")", 0) => found.push(joined(&std::mem::take(&mut words))),
            (_, 1..) => words.push(*token),
            _ => {}
        }
    }
    found
}
