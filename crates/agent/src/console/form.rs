//! The questions about a network connection, one after the other, and the answer as a keyfile of NetworkManager.

use std::fmt::Write as _;
use std::net::IpAddr;

use ipnet::IpNet;

/// Beginning of the names of connections that the form makes.
pub(super) const CONNECTION_PREFIX: &str = "atoll-";

/// A network connection of one interface.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct NetworkConnection {
    pub(super) interface: String,
    /// None: by DHCP, and by advertisements of routers.
    pub(super) address: Option<IpNet>,
    pub(super) gateway: Option<IpAddr>,
    pub(super) name_servers: Vec<IpAddr>,
}

/// The question that is asked next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Interface,
    Address,
    Gateway,
    NameServers,
}

/// The form in progress.
#[derive(Debug)]
pub(super) struct NetworkForm {
    interfaces: Vec<String>,
    question: Question,
    connection: NetworkConnection,
}

/// The form after an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FormProgress {
    /// Ask [`NetworkForm::prompt`].
    Ask,
    /// The answer was wrong: ask again.
    Wrong(String),
    Done(NetworkConnection),
    Cancelled,
}

impl NetworkForm {
    pub(super) fn new(interfaces: Vec<String>) -> Self {
        Self {
            interfaces,
            question: Question::Interface,
            connection: NetworkConnection::default(),
        }
    }

    pub(super) fn prompt(&self) -> String {
        match self.question {
            Question::Interface => format!(
                "Interface ({}), or q to leave: ",
                self.interfaces.join(", ")
            ),
            Question::Address => "Address with prefix, as 192.0.2.7/24, or dhcp: ".to_owned(),
            Question::Gateway => "Default gateway, or nothing: ".to_owned(),
            Question::NameServers => {
                "DNS servers with blanks between them, or nothing: ".to_owned()
            }
        }
    }

    /// Takes the answer to the question.
    pub(super) fn answer(&mut self, text: &str) -> FormProgress {
        let text = text.trim();
        if matches!(text, "q" | "quit") {
            return FormProgress::Cancelled;
        }
        match self.take(text) {
            Ok(None) => FormProgress::Done(std::mem::take(&mut self.connection)),
            Ok(Some(next)) => {
                self.question = next;
                FormProgress::Ask
            }
            Err(problem) => FormProgress::Wrong(problem),
        }
    }

    fn take(&mut self, text: &str) -> Result<Option<Question>, String> {
        let connection = &mut self.connection;
        Ok(match self.question {
            Question::Interface => {
                if !self.interfaces.iter().any(|name| name == text) {
                    return Err(format!("there is no interface {text:?}"));
                }
                text.clone_into(&mut connection.interface);
                Some(Question::Address)
            }
            Question::Address if text == "dhcp" => {
                connection.address = None;
                Some(Question::NameServers)
            }
            Question::Address => {
                let address = text.parse();
                connection.address =
                    Some(address.map_err(|_| format!("{text:?} is no address with a prefix"))?);
                Some(Question::Gateway)
            }
            Question::Gateway => {
                connection.gateway = gateway(text, connection.address)?;
                Some(Question::NameServers)
            }
            Question::NameServers => {
                let parse = |text: &str| {
                    text.parse()
                        .map_err(|_| format!("{text:?} is no address of a server"))
                };
                let servers = text.split([' ', ',']).filter(|part| !part.is_empty());
                connection.name_servers = servers.map(parse).collect::<Result<_, _>>()?;
                None
            }
        })
    }
}

fn gateway(text: &str, own: Option<IpNet>) -> Result<Option<IpAddr>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let gateway: IpAddr = text
        .parse()
        .map_err(|_| format!("{text:?} is no address"))?;
    match own {
        Some(own) if !own.contains(&gateway) && gateway.is_ipv4() => {
            Err(format!("{gateway} is not in the network {}", own.trunc()))
        }
        _ => Ok(Some(gateway)),
    }
}

impl NetworkConnection {
    /// Name of the connection, and of its file without the ending.
    pub(super) fn name(&self) -> String {
        format!("{}{}", CONNECTION_PREFIX, self.interface)
    }

    /// The keyfile. Source: nm-settings-keyfile(5).
    pub(super) fn keyfile(&self) -> String {
        let mut text = format!(
            "[connection]\nid={}\ntype=ethernet\ninterface-name={}\nautoconnect=true\nautoconnect-priority=100\n",
            self.name(),
            self.interface
        );
        for (family, is_ipv6) in [("ipv4", false), ("ipv6", true)] {
            let _ = write!(text, "\n[{family}]\n");
            match self.address {
                Some(address) if address.addr().is_ipv6() == is_ipv6 => {
                    let gateway = self
                        .gateway
                        .map_or_else(String::new, |gateway| format!(",{gateway}"));
                    let _ = write!(text, "method=manual\naddress1={address}{gateway}\n");
                }
                Some(_) => {
                    // It may have no other key.
                    text.push_str("method=disabled\n");
                    continue;
                }
                None => text.push_str("method=auto\n"),
            }
            let servers: Vec<String> = self
                .name_servers
                .iter()
                .filter(|server| server.is_ipv6() == is_ipv6)
                .map(|server| format!("{server};"))
                .collect();
            if !servers.is_empty() {
                let _ = writeln!(text, "dns={}\nignore-auto-dns=true", servers.concat());
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(answers: &[&str]) -> FormProgress {
        let mut form = NetworkForm::new(vec!["eno1".to_owned(), "eno2".to_owned()]);
        let mut last = FormProgress::Ask;
        for answer in answers {
            last = form.answer(answer);
        }
        last
    }

    #[test]
    fn a_static_address_becomes_a_keyfile() {
        let FormProgress::Done(connection) =
            filled(&["eno2", "192.0.2.7/24", "192.0.2.1", "192.0.2.2 2001:db8::2"])
        else {
            panic!("not done");
        };
        insta::assert_snapshot!(connection.keyfile());
    }

    #[test]
    fn wrong_answers_are_asked_again() {
        let wrong = |answers: &[&str]| matches!(filled(answers), FormProgress::Wrong(_));
        assert!(wrong(&["eno3"]));
        assert!(wrong(&["eno1", "192.0.2.7"]));
        assert!(wrong(&["eno1", "192.0.2.7/24", "198.51.100.1"]));
        assert!(wrong(&["eno1", "192.0.2.7/24", "", "x"]));
        assert_eq!(filled(&["eno1", "q"]), FormProgress::Cancelled);
        let dhcp = filled(&["eno1", "192.0.2.7", "dhcp", ""]);
        let expected = NetworkConnection {
            interface: "eno1".to_owned(),
            ..NetworkConnection::default()
        };
        assert_eq!(dhcp, FormProgress::Done(expected));
    }
}
