//! Options of a keyfile's section as tables: the member of nmstate, the key, and the form of its value.

use serde_json::Value;

use crate::keyfile::KeyfileSection;
use crate::scalar::{boolean, described, integer};
use crate::unrenderable::Unrenderable;

/// How an option is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OptionKind {
    /// A number up to this one.
    Number(i64),
    /// A number up to the first; the second one is the same as none.
    NumberUnless(i64, i64),
    /// One of these words, or its index.
    Word(&'static [&'static str]),
    /// The index of one of these words, or the index itself.
    Index(&'static [&'static str]),
    /// The text of one of these words; an empty one is left out.
    Choice(&'static [(&'static str, &'static str)]),
    /// The sum of the bits of these words.
    Bits(&'static [(&'static str, u32)]),
    /// 1 or 0.
    Digit,
    /// `true` or `false`.
    Truth,
    /// `yes` or `no`.
    YesNo,
    /// `no`, or nothing for true.
    FalseAsNo,
    /// Any text. A refusal never shows the value, which may be secret.
    Text,
    /// A password: text, but not the one that nmstate shows instead of it.
    Secret,
    /// A text in capital letters, as nmstate writes MAC addresses.
    Capitals,
    /// A list of texts, joined by commas.
    Texts,
    /// A list of texts, each with a semicolon behind it.
    TextList,
    /// The bytes of a MAC address, as a list of numbers.
    MacBytes,
    /// Rendered elsewhere, or a report of a running system.
    Unwritten,
}
use OptionKind::{
    Bits, Capitals, Choice, Digit, FalseAsNo, Index, MacBytes, Number, NumberUnless, Secret, Text,
    TextList, Texts, Truth, Unwritten, Word, YesNo,
};

/// The text that nmstate shows instead of a password.
const HIDDEN_PASSWORD: &str = "<_password_hid_by_nmstate>";

/// Name in nmstate, key, form.
pub(crate) type OptionRow = (&'static str, &'static str, OptionKind);

/// Sets the keys of all options. An option may have several rows, each a key.
///
/// Errors: an unknown option, or a value that is none of its form.
pub(crate) fn set_options<'a>(
    section: &mut KeyfileSection,
    options: impl IntoIterator<Item = (&'a String, &'a Value)>,
    rows: &[OptionRow],
) -> Result<(), Unrenderable> {
    for (name, value) in options {
        let mut of_name = rows.iter().filter(|row| row.0 == name).peekable();
        if of_name.peek().is_none() {
            let reason = format!("the option {name} cannot be rendered");
            return Err(Unrenderable::member(name, reason));
        }
        for (_, key, kind) in of_name {
            let text = written(*kind, value).ok_or_else(|| refused(name, *kind, value))?;
            if !text.is_empty() {
                section.set(*key, text);
            }
        }
    }
    Ok(())
}

/// The refusal of a value that is none of the option's form.
pub(crate) fn refused(name: &str, kind: OptionKind, value: &Value) -> Unrenderable {
    let wanted = wanted(kind);
    let reason = match kind {
        Text | Secret | Capitals | Texts | TextList => format!("{name} is not {wanted}"),
        _ => format!("{name} cannot be {}: write {wanted}", described(value)),
    };
    Unrenderable::member(name, reason)
}

fn wanted(kind: OptionKind) -> String {
    match kind {
        Number(most) | NumberUnless(most, _) if most == i64::MAX => "a whole number".to_owned(),
        Number(most) | NumberUnless(most, _) => format!("a number from 0 to {most}"),
        Word(words) | Index(words) => format!("one of [{}]", words.join(" ")),
        Choice(words) => {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            format!("one of [{}]", words.join(" "))
        }
        Bits(words) => {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            format!("a list of [{}]", words.join(" "))
        }
        Digit | Truth | YesNo | FalseAsNo => "true or false".to_owned(),
        Secret => "a password: put it in quotes, not the text that nmstate shows".to_owned(),
        Text | Capitals => "text: put it in quotes".to_owned(),
        Texts | TextList => "a list of texts".to_owned(),
        MacBytes => "a MAC address, such as 02:00:00:00:00:01".to_owned(),
        Unwritten => "nothing".to_owned(),
    }
}

/// The value of a key; empty for one that is left out.
pub(crate) fn written(kind: OptionKind, value: &Value) -> Option<String> {
    let number = |most: i64| integer(value).filter(|number| (0..=most).contains(number));
    let index = |words: &[&str]| {
        let named = value
            .as_str()
            .and_then(|text| words.iter().position(|word| *word == text));
        let number = || usize::try_from(integer(value)?).ok();
        named.or_else(number).filter(|index| *index < words.len())
    };
    let texts = || -> Option<Vec<&str>> { value.as_array()?.iter().map(Value::as_str).collect() };
    match kind {
        Number(most) => number(most).map(|number| number.to_string()),
        NumberUnless(most, none) => number(most).map(|number| text_unless(number, none)),
        Word(words) => index(words).map(|index| words[index].to_owned()),
        Index(words) => index(words).map(|index| index.to_string()),
        Choice(words) => {
            let found = words.iter().find(|(word, _)| value == word);
            found.map(|(_, text)| (*text).to_owned())
        }
        Bits(words) => {
            let bit = |text: &str| words.iter().find(|(word, _)| *word == text);
            let bits: Option<Vec<u32>> = texts()?.into_iter().map(|it| Some(bit(it)?.1)).collect();
            let sum = bits?.into_iter().fold(0, |sum, bit| sum | bit);
            Some(text_unless(i64::from(sum), 0))
        }
        Digit => boolean(value).map(|flag| u8::from(flag).to_string()),
        Truth => boolean(value).map(|flag| flag.to_string()),
        YesNo => boolean(value).map(|flag| if flag { "yes" } else { "no" }.to_owned()),
        FalseAsNo => boolean(value).map(|flag| if flag { "" } else { "no" }.to_owned()),
        Text => value.as_str().map(str::to_owned),
        Secret => {
            let text = value.as_str().filter(|text| *text != HIDDEN_PASSWORD);
            text.map(str::to_owned)
        }
        Capitals => value.as_str().map(str::to_ascii_uppercase),
        Texts => texts().map(|texts| texts.join(",")),
        TextList => texts().map(|texts| texts.iter().flat_map(|text| [*text, ";"]).collect()),
        MacBytes => {
            let bytes = value.as_str()?.split(':').map(|byte| {
                let number = u8::from_str_radix(byte, 16).ok();
                number.map(|number| number.to_string())
            });
            let bytes: Option<Vec<String>> = bytes.collect();
            bytes
                .filter(|bytes| bytes.len() == 6)
                .map(|it| it.join(";"))
        }
        Unwritten => Some(String::new()),
    }
}

/// The number, or nothing where it is the default.
fn text_unless(number: i64, default: i64) -> String {
    if number == default {
        String::new()
    } else {
        number.to_string()
    }
}
