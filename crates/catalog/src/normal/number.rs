//! Number formatting of the normal form.

/// Decimal digits that a 64-bit float holds exactly.
const EXACT_DIGITS: usize = 15;

/// Length of the JSON number at the start of `text`; `None` without one.
pub(super) fn length(text: &[u8]) -> Option<usize> {
    let sign = usize::from(text.first() == Some(&b'-'));
    let whole = digits(&text[sign..]);
    if whole == 0 || (whole > 1 && text[sign] == b'0') {
        return None;
    }
    let mut at = sign + whole;
    if text.get(at) == Some(&b'.') {
        let fraction = digits(&text[at + 1..]);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(&text[at + 1 + sign..]);
        if exponent == 0 {
            return None;
        }
        at += 1 + sign + exponent;
    }
    Some(at)
}

/// Appends the number `text`; `None` beyond 64-bit floats.
pub(super) fn copy(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let whole = text.strip_prefix('-').unwrap_or(text);
    if whole.len() <= EXACT_DIGITS && digits(whole.as_bytes()) == whole.len() {
        out.extend_from_slice(text.as_bytes());
        return Some(());
    }
    let number: f64 = text.parse().ok()?;
    number.is_finite().then(|| print(number, out))
}

/// Appends a finite number.
pub(super) fn print(number: f64, out: &mut Vec<u8>) {
    if number == 0.0 && number.is_sign_negative() {
        out.push(b'-');
    }
    out.extend_from_slice(ryu_js::Buffer::new().format_finite(number).as_bytes());
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}
