//! `.indexignore`: exclusion of files from a catalog.
//!
//! Gitignore patterns: one without `/` matches a name at every depth; one that matches a folder matches everything in
//! it; the last match wins, so a later `!pattern` re-includes files even below excluded folders. Source:
//! github.com/joelanford/ignore, which operator-registry uses.

mod glob;

use self::glob::Glob;

/// Name of pattern files.
pub(crate) const FILE_NAME: &str = ".indexignore";

/// The patterns of a catalog.
#[derive(Debug, Default)]
pub(crate) struct Ignore {
    patterns: Vec<Pattern>,
}

#[derive(Debug)]
struct Pattern {
    /// Folder of the pattern's file.
    folder: Vec<Vec<u8>>,
    /// Segments between `/`.
    parts: Vec<PatternPart>,
    is_negated: bool,
    folders_only: bool,
}

#[derive(Debug)]
struct PatternPart {
    text: Vec<u8>,
    glob: Glob,
}

impl Ignore {
    /// Adds the pattern file `text` of `folder`. Files are added in walk order: later ones win.
    pub(crate) fn add(&mut self, folder: &[&[u8]], text: &[u8]) {
        let patterns = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        let patterns = patterns.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
        self.patterns
            .extend(patterns.filter_map(|line| Pattern::parse(folder, line)));
    }

    /// Whether the file is excluded.
    pub(crate) fn matches(&self, path: &[&[u8]]) -> bool {
        let decides = self.patterns.iter().rev().find(|it| it.matches(path));
        decides.is_some_and(|pattern| !pattern.is_negated)
    }
}

impl Pattern {
    /// `None` for malformed patterns: they match nothing.
    fn parse(folder: &[&[u8]], line: &[u8]) -> Option<Self> {
        let taken_back = line.strip_prefix(b"!");
        let line = taken_back.unwrap_or(line);
        let of_folders = line.strip_suffix(b"/");
        let parts = of_folders.unwrap_or(line).split(|&byte| byte == b'/');
        Some(Self {
            folder: folder.iter().map(|part| part.to_vec()).collect(),
            parts: parts.map(PatternPart::parse).collect::<Option<_>>()?,
            is_negated: taken_back.is_some(),
            folders_only: of_folders.is_some(),
        })
    }

    fn matches(&self, path: &[&[u8]]) -> bool {
        if path.len() <= self.folder.len() || !self.folder.iter().zip(path).all(|(a, b)| a == b) {
            return false;
        }
        let path = &path[self.folder.len()..];
        match self.parts.as_slice() {
            [name] => self.matches_name(&name.glob, path),
            _ => self.matches_path(path),
        }
    }

    fn matches_name(&self, name: &Glob, path: &[&[u8]]) -> bool {
        let at = path.iter().position(|part| name.matches(part));
        at.is_some_and(|at| !self.folders_only || at + 1 < path.len())
    }

    /// Matches segment by segment from the pattern's folder. Source: the peer's quirks: `**` extends to the first
    /// segment that matches its successor, and a segment with `**` and anything else never matches.
    fn matches_path(&self, mut path: &[&[u8]]) -> bool {
        let mut is_match = false;
        let mut may_skip = false;
        for (index, part) in self.parts.iter().enumerate() {
            if part.text.is_empty() {
                may_skip = false;
                continue;
            }
            if part.text == b"**" {
                if index + 1 == self.parts.len() {
                    break;
                }
                may_skip = true;
                continue;
            }
            let Some(first) = path.first().filter(|_| !part.is_mixed()) else {
                return false;
            };
            if may_skip {
                may_skip = false;
                let at = path.iter().position(|it| part.glob.matches(it));
                is_match = at.is_some();
                path = at.map_or(&[], |at| &path[at + 1..]);
            } else if part.glob.matches(first) {
                is_match = true;
                path = &path[1..];
            } else {
                return false;
            }
        }
        is_match && !(self.folders_only && path.is_empty())
    }
}

impl PatternPart {
    fn parse(text: &[u8]) -> Option<Self> {
        let glob = Glob::parse(text)?;
        let text = text.to_vec();
        Some(Self { text, glob })
    }

    /// Whether the segment has `**` beside other characters.
    fn is_mixed(&self) -> bool {
        self.text.windows(2).any(|two| two == b"**")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ignore(files: &[(&str, &str)]) -> Ignore {
        let mut ignore = Ignore::default();
        for (folder, text) in files {
            ignore.add(&parts(folder), text.as_bytes());
        }
        ignore
    }

    fn parts(path: &str) -> Vec<&[u8]> {
        let parts = path.split('/').filter(|part| !part.is_empty());
        parts.map(str::as_bytes).collect()
    }

    #[track_caller]
    fn check(ignore: &Ignore, left_out: &[&str], taken: &[&str]) {
        for path in left_out {
            assert!(ignore.matches(&parts(path)), "{path} is taken");
        }
        for path in taken {
            assert!(!ignore.matches(&parts(path)), "{path} is left out");
        }
    }

    #[test]
    fn a_name_matches_at_every_depth_and_everything_below() {
        let ignore = ignore(&[("", "a\n*.md\n")]);
        check(
            &ignore,
            &["a", "b/a", "a/b/c", "x/README.md"],
            &["ab", "b/c", "x.mdx"],
        );
    }

    #[test]
    fn a_leading_slash_anchors_to_the_folder() {
        let ignore = ignore(&[("", "/a"), ("d", "/b")]);
        check(
            &ignore,
            &["a", "a/b", "d/b", "d/b/c"],
            &["b", "d/a", "d/c/b", "e/b"],
        );
    }

    #[test]
    fn a_trailing_slash_matches_folders_only() {
        let ignore = ignore(&[("", "a/\nb/c/\n")]);
        check(
            &ignore,
            &["a/x", "y/a/x", "b/c/d"],
            &["a", "y/a", "b/c", "z/b/c/d"],
        );
    }

    #[test]
    fn double_stars_match_across_folders() {
        let ignore = ignore(&[("", "/a/**/f\n**/g\nh/**\ni**/j\n")]);
        check(
            &ignore,
            &[
                "a/f",
                "a/b/f",
                "a/b/c/f/d",
                "g",
                "x/y/g",
                "h/x",
                "h/y/z",
                "h",
            ],
            &["f", "b/a/f", "x/h/y", "i/j", "ix/j"],
        );
    }

    #[test]
    fn a_later_negation_re_includes_below_an_excluded_folder() {
        let ignore = ignore(&[("", "*\n!keep.json\n"), ("sub", "!a\n")]);
        check(
            &ignore,
            &["x", "sub/b"],
            &["keep.json", "deep/keep.json", "sub/a", "sub/a/b"],
        );
    }

    #[test]
    fn an_earlier_negation_does_not_re_include() {
        let ignore = ignore(&[("", "!a\na\n")]);
        check(&ignore, &["a"], &["b"]);
    }

    #[test]
    fn comments_white_space_and_malformed_patterns_match_nothing() {
        let ignore = ignore(&[("", "# a\n\n  b  \r\n\t#c\n[\n!\n/\n")]);
        check(&ignore, &["b"], &["a", "# a", "#c", "c", "[", "!"]);
    }
}
