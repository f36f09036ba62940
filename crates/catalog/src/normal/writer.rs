//! Writer of the normal form, value by value.

use std::cmp::Ordering;
use std::ops::Range;
use std::str;

use super::malformed::Malformed;
use super::text::unescaped;
use super::{number, text};

/// Output style of numbers and strings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Style {
    /// Normal form of documents.
    #[default]
    Normal,
    /// Go's output for YAML input: integers keep their digits, and `<`, `>` and `&` are escaped.
    Go,
}

/// A document being written. Reusable: it keeps its buffers.
#[derive(Debug, Default)]
pub(crate) struct JsonWriter {
    out: Vec<u8>,
    /// Open objects and lists, the innermost last.
    open: Vec<OpenValue>,
    /// Members of open objects, the innermost's last; those of the outermost object stay after it is closed.
    members: Vec<ObjectMember>,
    /// Scratch buffer for sorting members.
    sorted: Vec<u8>,
    style: Style,
}

#[derive(Debug)]
enum OpenValue {
    /// Number of members of the enclosing objects.
    Object(usize),
    /// Whether the list has a value.
    List(bool),
}

/// A member of an object. Offsets in the output.
#[derive(Debug, Clone, Copy)]
struct ObjectMember {
    start: usize,
    /// End of the key, closing quote included.
    key_end: usize,
    end: usize,
}

impl JsonWriter {
    pub(crate) fn new(style: Style) -> Self {
        Self {
            style,
            ..Self::default()
        }
    }

    /// Clears the output.
    pub(crate) fn clear(&mut self) {
        self.out.clear();
        self.open.clear();
        self.members.clear();
    }

    /// The output.
    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.out).expect("only whole characters are written")
    }

    /// The output, consuming the writer.
    pub(crate) fn into_text(self) -> String {
        String::from_utf8(self.out).expect("only whole characters are written")
    }

    /// Length of the output. Units: bytes.
    pub(crate) fn text_length(&self) -> usize {
        self.out.len()
    }

    /// Whether the output is an object.
    pub(crate) fn is_object(&self) -> bool {
        self.out.first() == Some(&b'{')
    }

    /// Name (without quotes) and value of each member of the written object, in the normal form.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &str)> {
        let text = self.text();
        self.members.iter().map(move |it| {
            (
                &text[it.start + 1..it.key_end - 1],
                &text[it.key_end + 1..it.end],
            )
        })
    }

    /// Number of open objects and lists.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_in_object(&self) -> bool {
        matches!(self.open.last(), Some(OpenValue::Object(_)))
    }

    pub(crate) fn begin_object(&mut self) {
        self.separate();
        self.open.push(OpenValue::Object(self.members.len()));
        self.out.push(b'{');
    }

    pub(crate) fn begin_list(&mut self) {
        self.separate();
        self.open.push(OpenValue::List(false));
        self.out.push(b'[');
    }

    /// Closes the innermost object or list.
    pub(crate) fn end(&mut self) {
        match self.open.pop() {
            Some(OpenValue::Object(first)) => {
                self.end_member(first);
                self.sort(first);
                if !self.open.is_empty() {
                    self.members.truncate(first);
                }
                self.out.push(b'}');
            }
            Some(OpenValue::List(_)) => self.out.push(b']'),
            None => {}
        }
    }

    pub(crate) fn key(&mut self, key: &str) {
        let start = self.begin_key();
        self.print(key);
        self.end_key(start);
    }

    pub(crate) fn string(&mut self, value: &str) {
        self.separate();
        self.print(value);
    }

    /// Writes a finite number.
    pub(crate) fn number(&mut self, value: f64) {
        self.separate();
        number::print(value, &mut self.out);
    }

    /// Writes an integer.
    #[expect(
        clippy::cast_precision_loss,
        reason = "that is how all numbers are read"
    )]
    pub(crate) fn integer(&mut self, value: i128) {
        if self.style == Style::Normal {
            return self.number(value as f64);
        }
        self.literal(&value.to_string());
    }

    /// Writes `true`, `false` or `null`.
    pub(crate) fn literal(&mut self, literal: &str) {
        self.separate();
        self.out.extend_from_slice(literal.as_bytes());
    }

    /// Copies the key at `at` of a JSON text; returns its end.
    pub(super) fn key_from(&mut self, source: &str, at: usize) -> Result<usize, Malformed> {
        let start = self.begin_key();
        self.out.push(b'"');
        let end = text::copy(source, at, &mut self.out)?;
        self.end_key(start);
        Ok(end)
    }

    /// Copies the string at `at` of a JSON text; returns its end.
    pub(super) fn string_from(&mut self, source: &str, at: usize) -> Result<usize, Malformed> {
        self.separate();
        self.out.push(b'"');
        text::copy(source, at, &mut self.out)
    }

    /// Writes a JSON number; `None` when it is too large.
    pub(super) fn number_from(&mut self, number: &str) -> Option<()> {
        self.separate();
        number::copy(number, &mut self.out)
    }

    fn print(&mut self, value: &str) {
        let start = self.out.len();
        text::print(value, &mut self.out);
        if self.style == Style::Go
            && memchr::memchr3(b'<', b'>', b'&', &self.out[start..]).is_some()
        {
            let printed = self.out.split_off(start);
            let printed = str::from_utf8(&printed).expect("it was printed just now");
            self.out
                .extend_from_slice(text::html_escaped(printed).as_bytes());
        }
    }

    /// Writes a comma before all values of a list but the first.
    fn separate(&mut self) {
        if let Some(OpenValue::List(is_begun)) = self.open.last_mut() {
            if *is_begun {
                self.out.push(b',');
            }
            *is_begun = true;
        }
    }

    fn begin_key(&mut self) -> usize {
        if let Some(&OpenValue::Object(first)) = self.open.last()
            && self.end_member(first)
        {
            self.out.push(b',');
        }
        self.out.len()
    }

    fn end_key(&mut self, start: usize) {
        let key_end = self.out.len();
        self.members.push(ObjectMember {
            start,
            key_end,
            end: key_end,
        });
        self.out.push(b':');
    }

    /// Records the end of the latest member; returns whether there is one.
    fn end_member(&mut self, first: usize) -> bool {
        let end = self.out.len();
        let latest = self.members[first..].last_mut();
        latest.map(|member| member.end = end).is_some()
    }

    /// Sorts the members of the innermost object.
    fn sort(&mut self, first: usize) {
        let members = &mut self.members[first..];
        let out = &mut self.out;
        if members.is_sorted_by(|one, other| order(out, one, other) == Ordering::Less) {
            return;
        }
        let start = members[0].start;
        members.sort_by(|one, other| order(out, one, other));
        self.sorted.clear();
        let mut kept = 0;
        for index in 0..members.len() {
            let member = members[index];
            let next = members.get(index + 1);
            if next.is_some_and(|next| order(out, &member, next) == Ordering::Equal) {
                continue;
            }
            if kept > 0 {
                self.sorted.push(b',');
            }
            members[kept] = member.at(start + self.sorted.len());
            self.sorted.extend_from_slice(&out[member.range()]);
            kept += 1;
        }
        out.truncate(start);
        out.extend_from_slice(&self.sorted);
        self.members.truncate(first + kept);
    }
}

impl ObjectMember {
    fn range(self) -> Range<usize> {
        self.start..self.end
    }

    fn at(self, start: usize) -> Self {
        Self {
            start,
            key_end: start + (self.key_end - self.start),
            end: start + (self.end - self.start),
        }
    }
}

/// Orders members by the bytes of their names. The sort is stable: the last duplicate stays last.
fn order(out: &[u8], one: &ObjectMember, other: &ObjectMember) -> Ordering {
    let [one, other] = [one, other].map(|it| &out[it.start + 1..it.key_end - 1]);
    if !one.contains(&b'\\') && !other.contains(&b'\\') {
        return one.cmp(other);
    }
    let [one, other] = [one, other].map(|it| unescaped(str::from_utf8(it).unwrap_or_default()));
    one.cmp(&other)
}
