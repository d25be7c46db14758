//! Checks that the tests named in tests/README.md exist.

use std::path::Path;

#[test]
fn every_test_that_is_named_exists() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let text = std::fs::read_to_string(tests.join("README.md")).expect("tests/README.md");
    let mut named = 0;
    for (file, function) in text.split('`').filter_map(|word| word.split_once(".rs::")) {
        let source =
            std::fs::read_to_string(tests.join(format!("{file}.rs"))).unwrap_or_else(|error| panic!("{file}.rs: {error}"));
        let found =
            function == "*" || [format!("fn {function}("), format!("fn {function}<")].iter().any(|text| source.contains(text));
        assert!(found, "tests/{file}.rs has no test {function}");
        named += 1;
    }
    assert!(named > 60, "{named} tests are named");
}

/// Each line of a table that begins with a promise ends with tests, or says where they are.
#[test]
fn every_promise_has_a_test() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/README.md")).expect("tests/README.md");
    let promises = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| promise"));
    for promise in promises {
        assert!(promise.contains(".rs::") || promise.contains("`simt`"), "without a test: {promise}");
    }
}
