//! Options of a compilation, with NVRTC's names.

/// Parsed options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// Compute capability times ten: 90 means 9.0.
    pub capability: u32,
    /// Whether the architecture is real (`sm_90`), so that a CUBIN exists.
    pub is_real: bool,
    pub standard: String,
    /// The options `-D`, `-U`, `-I` and `-include`, for the preprocessor.
    pub preprocessor: Vec<String>,
    pub warnings: bool,
}

/// Numbers of supported architectures, virtual and real.
pub(super) const ARCHITECTURES: [u32; 12] = [75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121];

/// Options without a value that are accepted and have no effect.
const SWITCHES: [&str; 14] = [
    "-lineinfo",
    "--generate-line-info",
    "-G",
    "--device-debug",
    "--device-as-default-execution-space",
    "-default-device",
    "-use_fast_math",
    "--use_fast_math",
    "--extra-device-vectorization",
    "-extra-device-vectorization",
    "--restrict",
    "-restrict",
    "--no-cache",
    "-no-cache",
];

/// Options with a value that are accepted and have no effect.
const SETTINGS: [&str; 14] = [
    "--ftz",
    "-ftz",
    "--prec-sqrt",
    "-prec-sqrt",
    "--prec-div",
    "-prec-div",
    "--fmad",
    "-fmad",
    "--maxrregcount",
    "-maxrregcount",
    "--ptxas-options",
    "-Xptxas",
    "--split-compile",
    "-split-compile",
];

impl Options {
    /// Reads options. The error is the text of NVRTC's log.
    pub(super) fn read(options: &[String]) -> Result<Self, String> {
        let mut read =
            Self { capability: 75, is_real: false, standard: "c++17".into(), preprocessor: Vec::new(), warnings: true };
        let mut options = options.iter().map(|option| option.trim());
        while let Some(option) = options.next() {
            let (name, value) = match option.split_once('=') {
                Some((name, value)) if option.starts_with("--") || !is_attached(option) => (name, Some(value)),
                _ => (option, None),
            };
            let mut value = |or: &str| {
                value
                    .or_else(|| options.next())
                    .map(str::to_owned)
                    .ok_or_else(|| format!("nvrtc: error: option '{or}' requires a value\n"))
            };
            match name {
                "--gpu-architecture" | "-arch" => (read.capability, read.is_real) = architecture(&value(name)?)?,
                "--std" | "-std" => read.standard = standard(&value(name)?)?,
                "--define-macro" | "-D" => read.preprocessor.push(format!("-D{}", value(name)?)),
                "--undefine-macro" | "-U" => read.preprocessor.push(format!("-U{}", value(name)?)),
                "--include-path" | "-I" => read.preprocessor.push(format!("-I{}", value(name)?)),
                "--pre-include" | "-include" => read.preprocessor.extend(["-include".into(), value(name)?]),
                "-w" | "--disable-warnings" => read.warnings = false,
                "--diag-suppress" | "-diag-suppress" | "--diag-error" | "-diag-error" | "--diag-warn" | "-diag-warn" => {
                    value(name)?;
                }
                name if SETTINGS.contains(&name) => {
                    value(name)?;
                }
                name if SWITCHES.contains(&name) => {}
                _ if is_attached(option) => read.preprocessor.push(option.to_owned()),
                _ => return Err(format!("nvrtc: error: unrecognized option {option} found\n")),
            }
        }
        Ok(read)
    }
}

/// Whether an option is `-DNAME`, `-UNAME` or `-Ipath`, with its value attached.
fn is_attached(option: &str) -> bool {
    ["-D", "-U", "-I"].iter().any(|name| option.starts_with(name) && option.len() > 2)
}

fn architecture(name: &str) -> Result<(u32, bool), String> {
    let invalid = || String::from("nvrtc: error: invalid value for --gpu-architecture (-arch)\n");
    let (number, is_real) = match (name.strip_prefix("compute_"), name.strip_prefix("sm_")) {
        (Some(number), _) => (number, false),
        (_, Some(number)) => (number, true),
        _ => return Err(invalid()),
    };
    let number = number.trim_end_matches(['a', 'f']).parse().map_err(|_| invalid())?;
    if ARCHITECTURES.contains(&number) { Ok((number, is_real)) } else { Err(invalid()) }
}

fn standard(name: &str) -> Result<String, String> {
    match name {
        // Parts of the runtime's headers need C++17.
        "c++03" | "c++11" | "c++14" | "c++17" => Ok("c++17".into()),
        "c++20" => Ok(name.into()),
        _ => Err("nvrtc: error: invalid value for --std (-std)\n".into()),
    }
}
