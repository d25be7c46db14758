//! The files that tests/README.md links exist, and each of its tests opens with a comment that says what it promises.

use std::fs::read_to_string;
use std::path::Path;

/// Sources among the links open with a comment, and each file of the suite is linked.
#[test]
fn linked_tests_exist_and_open_with_a_comment() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let page = read_to_string(tests.join("README.md")).expect("tests/README.md");
    let links: Vec<&str> = page.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()).collect();
    for link in &links {
        let path = tests.join(link);
        assert!(path.exists(), "tests/README.md links {link}, which does not exist");
        if link.ends_with(".rs") {
            let source = read_to_string(&path).unwrap_or_else(|error| panic!("{link}: {error}"));
            assert!(source.starts_with("//! "), "{link} does not open with a comment: say there which promises it keeps");
        }
    }
    for file in tests.join("suite").read_dir().expect("tests/suite") {
        let name = file.expect("tests/suite").file_name().into_string().expect("a name in UTF-8");
        let link = format!("suite/{name}");
        assert!(!name.ends_with(".rs") || links.contains(&link.as_str()), "tests/README.md does not link {link}");
    }
}
