//! Kernel arguments of discovery images and arguments of the installer on a host.

use model::Error;
use model::infra_env::{KernelArgument, KernelArgumentOperation};

use super::refusal::refuse;

/// Checks an infra-env's kernel arguments: only appending works on an image.
/// Source: assisted-service, internal/bminventory/inventory.go, validateKernelArguments.
pub fn kernel_arguments(list: &[KernelArgument]) -> Result<(), Error> {
    for argument in list {
        match argument.operation {
            Some(KernelArgumentOperation::Append) => {}
            other => {
                let name = other.map_or("", KernelArgumentOperation::as_str);
                return Err(refuse(
                    "kernel_arguments",
                    name,
                    "is not possible on a discovery image: use append",
                ));
            }
        }
        if !is_kernel_argument(&argument.value) {
            return Err(refuse(
                "kernel_arguments",
                &argument.value,
                "is not a kernel argument: put blanks inside double quotes and close every quote",
            ));
        }
    }
    Ok(())
}

fn is_kernel_argument(text: &str) -> bool {
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            ' ' | '\t' | '\n' | '\r' if !quoted => return false,
            _ => {}
        }
    }
    !text.is_empty() && !quoted
}

/// Flags that are followed by a value.
const WITH_VALUE: &[&str] = &[
    "--append-karg",
    "--delete-karg",
    "--network-dir",
    "--save-partlabel",
    "--save-partindex",
    "--image-url",
    "--image-file",
];
/// Flags without a value.
const ALONE: &[&str] = &["-n", "--copy-network"];

/// Checks the arguments that a user adds to the installer of a host.
/// Source: assisted-service, pkg/validations/validations.go, ValidateInstallerArgs.
pub fn installer_args(args: &[String]) -> Result<(), Error> {
    const FIELD: &str = "args";
    let mut rest = args.iter();
    while let Some(flag) = rest.next() {
        if ALONE.contains(&flag.as_str()) {
            continue;
        }
        if !WITH_VALUE.contains(&flag.as_str()) {
            return Err(refuse(
                FIELD,
                flag,
                &format!(
                    "is not allowed: use [{} {}]",
                    ALONE.join(" "),
                    WITH_VALUE.join(" ")
                ),
            ));
        }
        match rest.next() {
            Some(value) if is_installer_value(value) => {}
            Some(value) => {
                return Err(refuse(
                    FIELD,
                    value,
                    &format!("is not a value for {flag}: leave out blanks and shell characters"),
                ));
            }
            None => return Err(refuse(FIELD, flag, "needs a value after it")),
        }
    }
    Ok(())
}

fn is_installer_value(value: &str) -> bool {
    !value.is_empty()
        && !value.starts_with("--")
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "@!#$%*()_+-=//.,\";':{}[]".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(value: &str) -> KernelArgument {
        KernelArgument {
            operation: Some(KernelArgumentOperation::Append),
            value: value.to_owned(),
        }
    }

    #[test]
    fn kernel() {
        for good in ["quiet", "a=b", "a=\"b c\""] {
            assert!(kernel_arguments(&[append(good)]).is_ok(), "{good}");
        }
        for bad in ["", "a b", "a=\"b"] {
            assert!(kernel_arguments(&[append(bad)]).is_err(), "{bad}");
        }
        assert!(kernel_arguments(&[KernelArgument::default()]).is_err());
    }

    #[test]
    fn installer() {
        let args =
            |list: &[&str]| -> Vec<String> { list.iter().map(ToString::to_string).collect() };
        for good in [
            &[][..],
            &["-n"],
            &["--append-karg", "ip=dhcp", "--copy-network"],
            &["--save-partlabel", "data*"],
        ] {
            assert!(installer_args(&args(good)).is_ok(), "{good:?}");
        }
        for bad in [
            &["--wipe"][..],
            &["--append-karg"],
            &["--append-karg", "--copy-network"],
            &["--append-karg", "a b"],
            &["value"],
            &["--append-karg", "a|b"],
        ] {
            assert!(installer_args(&args(bad)).is_err(), "{bad:?}");
        }
    }
}
