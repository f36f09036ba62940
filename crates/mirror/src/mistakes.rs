//! Mistakes in a configuration: users correct them together, so they are reported together.

use model::Error;

/// Mistakes so far.
#[derive(Debug, Default)]
pub(crate) struct Mistakes(Vec<Error>);

impl Mistakes {
    /// Collects a mistake in the content (NotFound, Invalid), and passes other results on.
    ///
    /// Errors: any other failure, at once: later steps would fail, too.
    pub(crate) fn note<T>(&mut self, result: Result<T, Error>) -> Result<Option<T>, Error> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(mistake @ (Error::NotFound { .. } | Error::Invalid { .. })) => {
                self.0.push(mistake);
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Errors: the only mistake, or all of them as mistakes of `what`.
    pub(crate) fn none(mut self, what: &str) -> Result<(), Error> {
        if self.0.len() > 1 {
            let mut text = format!("it has {} mistakes:", self.0.len());
            for mistake in &self.0 {
                text.extend(["\n- ", &sentence(&mistake.chain())]);
            }
            return Err(Error::invalid(what, text));
        }
        self.0.pop().map_or(Ok(()), Err)
    }
}

/// With a capital, unless it begins with a name, and a full stop.
fn sentence(text: &str) -> String {
    let end = if text.ends_with(['.', '?', '!']) {
        ""
    } else {
        "."
    };
    let first = text.split(' ').next().unwrap_or_default();
    if !first.chars().all(|c| c.is_ascii_lowercase()) {
        return format!("{text}{end}");
    }
    let mut letters = text.chars();
    let capital = letters.next().map(|c| c.to_ascii_uppercase());
    let capital = capital.map_or_else(String::new, String::from);
    format!("{capital}{}{end}", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_reported_together_and_failures_at_once() {
        let mut mistakes = Mistakes::default();
        assert_eq!(mistakes.note(Ok(1)).unwrap(), Some(1));
        let unknown = Error::not_found("package", "\"a\" of r.io/b");
        assert_eq!(mistakes.note::<()>(Err(unknown)).unwrap(), None);
        let wrong = Error::invalid("r.io/b:v1", "no version fits");
        mistakes.note::<()>(Err(wrong)).unwrap();
        let away = Error::unavailable("the registry", "refused");
        mistakes.note::<()>(Err(away)).unwrap_err();
        let message = mistakes.none("the image set").unwrap_err().to_string();
        assert_eq!(
            message,
            "the image set: it has 2 mistakes:\n- Package \"a\" of r.io/b was not found.\n- r.io/b:v1: no version fits."
        );
    }

    #[test]
    fn one_mistake_stays_as_it_is() {
        let mut mistakes = Mistakes::default();
        let unknown = Error::not_found("package", "a");
        mistakes.note::<()>(Err(unknown)).unwrap();
        let message = mistakes.none("the image set").unwrap_err();
        assert!(matches!(message, Error::NotFound { .. }), "{message}");
        Mistakes::default().none("the image set").unwrap();
    }
}
