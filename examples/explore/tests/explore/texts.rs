//! Texts in every encoding, with every line end, and names of any letters.
//!
//! Keeps this promise of `examples/explore/docs/languages.md`:
//!
//! - Every text is read in UTF-8 and UTF-16, XML also in the encoding that it declares, and lines may end with LF, CR or CRLF.

use super::*;

/// A net whose names have letters beyond ASCII: `grün`, then `größe 2`.
const NET: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>
<pnml xmlns=\"http://www.pnml.org/version-2009/grammar/pnml\">
<net id=\"n\" type=\"http://www.pnml.org/version-2009/grammar/ptnet\"><page id=\"page\">
<place id=\"grün\"><initialMarking><text>1</text></initialMarking></place>
<place id=\"größe 2\"/>
<transition id=\"öffne\"/>
<arc id=\"a\" source=\"grün\" target=\"öffne\"/><arc id=\"b\" source=\"öffne\" target=\"größe 2\"/>
</page></net></pnml>
";

const PROPERTIES: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>
<property-set xmlns=\"http://mcc.lip6.fr/\">
<property><id>P-ä</id><description>grün</description><formula><exists-path><finally><integer-le>
<integer-constant>1</integer-constant><tokens-count><place>größe 2</place></tokens-count>
</integer-le></finally></exists-path></formula></property>
</property-set>
";

const DVE: &str = "// Zähler
byte zähler;
process Tür {
  state zu, öffnet;
  init zu;
  trans
    zu -> öffnet { effect zähler = 3; };
}
system async;
";

const SLCO: &str = "model Größe {
  // Zähler
  classes
  Käfig {
    variables Integer zähler
    state machines
    Tür {
      initial Zu states Öffnet
      transitions
        Zu -> Öffnet { zähler := 3 }
    }
  }
  objects k : Käfig()
}
";

const SENDER: &str = "des (0, 2, 2)\n(0, \"GRÜẞE !ä\", 1)\n(1, zurück, 0)\n";

const RECEIVER: &str = "des (0, 1, 2)\n(0, \"GRÜẞE !ä\", 1)\n";

const NETWORK: &str = "-- Grüße
label par using \"GRÜẞE !ä\" * \"GRÜẞE !ä\" -> grüße, zurück * _ -> zurück in
  \"tür.aut\" || \"wärter.aut\"
end par
";

const AUTOMATON: &str = "HOA: v1
/* Prüfung */
name: \"nie größer\"
States: 2
Start: 0
AP: 1 \"zähler == 3\"
Acceptance: 1 Inf(0)
--BODY--
State: 0
[!0] 0
[0] 1
State: 1 {0}
[t] 1
--END--
";

/// A text in each encoding, named as XML names it, and with each line end.
fn variants(text: &str) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for (end, name) in [("\n", "LF"), ("\r", "CR"), ("\r\n", "CRLF")] {
        let text = text.replace('\n', end);
        let words = |encoding: &str| text.replace("utf-8", encoding).encode_utf16().collect::<Vec<u16>>();
        let marked =
            |bytes: fn(u16) -> [u8; 2]| std::iter::once(0xfeff).chain(words("UTF-16")).flat_map(bytes).collect::<Vec<u8>>();
        all.push((format!("{name}, UTF-8"), text.clone().into_bytes()));
        all.push((format!("{name}, UTF-8 with its mark"), format!("\u{feff}{text}").into_bytes()));
        all.push((format!("{name}, UTF-16LE"), marked(u16::to_le_bytes)));
        all.push((format!("{name}, UTF-16BE"), marked(u16::to_be_bytes)));
        if text.starts_with("<?xml") {
            let bytes = |encoding| text.replace("utf-8", encoding).chars().map(|c| c as u8).collect::<Vec<u8>>();
            all.push((format!("{name}, ISO-8859-1"), bytes("ISO-8859-1")));
            all.push((format!("{name}, windows-1252"), bytes("windows-1252").to_vec()));
            all.push((
                format!("{name}, UTF-16LE without a mark"),
                words("UTF-16LE").into_iter().flat_map(u16::to_le_bytes).collect(),
            ));
            all.push((
                format!("{name}, UTF-16BE without a mark"),
                words("utf-16be").into_iter().flat_map(u16::to_be_bytes).collect(),
            ));
        }
    }
    all
}

pub fn texts_have_any_encoding_and_line_end() {
    let folder = TempDir::new().unwrap();
    for (file, text, arguments, length) in [
        ("a.dve", DVE, &["--goal", "zähler == 3 and Tür.öffnet"][..], 1),
        ("a.slco", SLCO, &["--goal", "k.zähler = 3 and k.Tür.Öffnet"], 1),
        ("tür.aut", SENDER, &["--goal", "tür == 1 and enabled(zurück)"], 1),
        ("a.exp", NETWORK, &["--goal", "tür == 0 and wärter == 1"], 2),
        ("a.pnml", NET, &["--goal", "tokens(\"größe 2\") > 0 and tokens(grün) == 0 and not fireable(öffne)"], 1),
    ] {
        for (name, bytes) in variants(text) {
            for (component, text) in [("tür.aut", SENDER), ("wärter.aut", RECEIVER)] {
                let same = variants(text).into_iter().find(|(other, _)| *other == name).map(|(_, bytes)| bytes);
                std::fs::write(folder.path().join(component), same.unwrap_or_else(|| text.into())).unwrap();
            }
            let path = folder.path().join(file);
            std::fs::write(&path, bytes).unwrap();
            let output = explore(&path, arguments.iter().chain(&["--json"]));
            let report = only_object(&output);
            assert_eq!(report["path"]["length"].as_u64(), Some(length), "{file}, {name}: {report}");
        }
    }
    // Names are in generated code, too.
    for (file, goal) in [("a.dve", "Tür.öffnet"), ("a.slco", "k.Tür.Öffnet"), ("a.pnml", "tokens(grün) == 0")] {
        let path = folder.path().join(file);
        let (code, report) = json(&path, &["--engine", "compiled", "--goal", goal]);
        assert_eq!((code, report["path"]["length"].as_u64()), (Some(1), Some(1)), "{report}");
    }
    // Texts beside the model.
    let (net, dve) = (folder.path().join("a.pnml"), folder.path().join("a.dve"));
    std::fs::write(&net, NET).unwrap();
    std::fs::write(&dve, DVE).unwrap();
    for (name, bytes) in variants(PROPERTIES) {
        let file = folder.path().join("properties.xml");
        std::fs::write(&file, bytes).unwrap();
        let text = String::from_utf8(explore(&net, ["--properties", file.to_str().unwrap()]).stdout).unwrap();
        assert!(text.contains("FORMULA P-ä TRUE"), "{name}: {text}");
    }
    for (name, bytes) in variants(AUTOMATON) {
        let file = folder.path().join("automaton.hoa");
        std::fs::write(&file, bytes).unwrap();
        let output = explore(&dve, ["--buchi", file.to_str().unwrap(), "--json"]);
        assert_eq!(output.status.code(), Some(1), "{name}: {output:?}");
    }
    // Commands of --step, from a file or a pipe.
    for (name, bytes) in variants("1\ne zähler\nq\n") {
        let mut child = spawned(&mut command_of(dve.to_str().unwrap(), &["--step"]));
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.lines().any(|line| line == "3"), "{name}: {text}");
    }
}

pub fn bytes_that_are_no_text_are_refused_with_their_line() {
    let folder = TempDir::new().unwrap();
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let broken = [&utf16("\u{feff}des (0, 1, 2)\r(0, \"")[..], &[0x00, 0xd8], &utf16("\", 1)\r")].concat();
    let (latin, declared) = (NET.chars().map(|c| c as u8).collect::<Vec<u8>>(), |encoding| NET.replace("utf-8", encoding));
    for (file, bytes, part) in [
        ("a.aut", &b"des (0, 1, 2)\r\n(0, \"gr\xfcn\", 1)\r\n"[..], "a.aut:2: the label `gr\u{fffd}n` is not UTF-8"),
        ("b.aut", &broken, "b.aut:2: the label `\u{fffd}` is not"),
        ("c.aut", b"\xff\xfe\0\0d\0\0\0", "c.aut cannot be read: the text is in UTF-32"),
        ("d.dve", b"byte x;\rbyte gr\xfcn;\r", "d.dve:2:8: a byte that is not UTF-8"),
        ("d.exp", b"-- gr\xfcn\r\n\"a.aut\" |[\"gr\xfcn\"]| \"a.aut\"", "d.exp:2:14: a byte that is not UTF-8"),
        ("e.pnml", &latin, "e.pnml:4:14: a byte that is not UTF-8"),
        ("f.pnml", declared("x-unknown").as_bytes(), "the encoding `x-unknown`"),
        ("g.pnml", b"<?xml version='1.0'?>\n<pnml>\xc3</pnml>", "g.pnml:2:7: a byte that is not UTF-8"),
    ] {
        let path = folder.path().join(file);
        std::fs::write(&path, bytes).unwrap();
        let output = explore(&path, ["--json"]);
        let error = only_object(&output)["error"].as_str().unwrap_or_default().to_string();
        assert!(output.status.code() == Some(2) && error.contains(part), "{file}: {error}");
    }
    // .NET declares UTF-16 in texts that it writes in UTF-8: what can be read as ASCII is not UTF-16.
    let path = folder.path().join("h.pnml");
    std::fs::write(&path, declared("utf-16")).unwrap();
    assert_eq!(counts(&json(&path, &["--goal", "tokens(\"größe 2\") == 1"]).1)[0], 2);
}
