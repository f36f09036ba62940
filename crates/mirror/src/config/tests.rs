use super::*;

/// What is wrong, one a line.
fn wrong(text: &str) -> String {
    match parse(text.as_bytes()) {
        Ok(configuration) => panic!("{text}\nis right: {configuration:?}"),
        Err(problems) => problems.to_string(),
    }
}

#[test]
fn the_starting_file_is_right() {
    let registry = "registry.example.org/mirror/metadata:v1".parse().ok();
    for registry in [None, registry.as_ref()] {
        let read = parse(starting_file(registry).as_bytes());
        assert!(matches!(read, Ok(Configuration::Mirror(_))), "{read:?}");
    }
}

#[test]
fn every_setting_of_the_starting_file_fits_where_it_stands() {
    let yaml = starting_file(None);
    let set = |line: &str| match line.split_once('#') {
        Some((indent, setting)) if indent.trim().is_empty() && !setting.starts_with(' ') => {
            format!("{indent}{setting}\n")
        }
        _ => format!("{line}\n"),
    };
    let everything: String = yaml.lines().map(set).collect();
    insta::assert_snapshot!(wrong(&everything), @"15:5: storageConfig.registry: excludes storageConfig.local: leave one of them out");
}
