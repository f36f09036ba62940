//! Modes that were meant in octal.

/// Whether a mode is unusual, and the same digits in octal are usual: 644 for 0644.
///
/// Source: coreos/butane, base/util/file.go.
pub(super) fn is_decimal_mistake(mode: i64, is_directory: bool) -> bool {
    let octal = i64::from_str_radix(&mode.to_string(), 8).unwrap_or(-1);
    let is_octal = (0..=0o7777).contains(&octal) && mode >= 0;
    is_octal && !is_usual(mode, is_directory) && is_usual(octal, is_directory)
}

/// Whether the bits are a sensible combination: others have no right that the group lacks, the group none that the
/// owner lacks; special bits fit the type.
fn is_usual(mode: i64, is_directory: bool) -> bool {
    const READ: i64 = 4;
    const WRITE: i64 = 2;
    const EXECUTE: i64 = 1;
    if mode == 0 {
        return true;
    }
    let mut granted = 0;
    for shift in [0, 3, 6] {
        let rights = (mode >> shift) & 7;
        let loses = granted & !rights != 0;
        let gains_execution = rights & EXECUTE != 0 && granted & (READ | EXECUTE) == READ;
        let is_blind = rights & (WRITE | EXECUTE) != 0 && rights & READ == 0;
        if loses || gains_execution || is_blind {
            return false;
        }
        granted |= rights;
    }
    let (is_setuid, is_setgid, is_sticky) =
        (mode & 0o4000 != 0, mode & 0o2000 != 0, mode & 0o1000 != 0);
    let (can_read, can_write, can_execute) = (
        granted & READ != 0,
        granted & WRITE != 0,
        granted & EXECUTE != 0,
    );
    if is_directory {
        return can_read && can_execute && !is_setuid && (can_write || !(is_setgid || is_sticky));
    }
    let is_sound_special = can_execute && mode & WRITE == 0;
    can_read && !is_sticky && (is_sound_special || !(is_setuid || is_setgid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_spellings_of_usual_modes_are_found() {
        for mode in [
            400, 440, 444, 500, 550, 555, 600, 640, 644, 660, 664, 700, 750, 755, 770, 775, 777,
        ] {
            assert!(is_decimal_mistake(mode, false), "{mode}");
        }
        for mode in [500, 700, 750, 755, 770, 775, 777, 1777, 2755, 3777] {
            assert!(is_decimal_mistake(mode, true), "{mode}");
        }
        for mode in [
            0,
            -1,
            420,
            0o644,
            0o755,
            0o600,
            0o4755,
            888,
            10_000,
            99_999,
            i64::MAX,
            i64::MIN,
        ] {
            assert!(!is_decimal_mistake(mode, false), "{mode}");
        }
        for mode in [0o755, 0o1777, 0o700, 493] {
            assert!(!is_decimal_mistake(mode, true), "{mode}");
        }
    }
}
