//! A scripted name server on loopback, over UDP and TCP.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// A day, as the servers of container networks send it.
const TTL: u32 = 86_400;

/// Scripted reaction to a query.
#[derive(Debug, Clone)]
pub(crate) enum Reaction {
    Addresses(Vec<IpAddr>),
    Code(ResponseCode),
    /// A truncated reply.
    Truncated,
    Silence,
}

/// Transport of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Over {
    Udp,
    Tcp,
}

/// A query; retransmissions are equal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Question {
    pub(crate) name: String,
    pub(crate) kind: RecordType,
    pub(crate) over: Over,
    id: u16,
}

/// The server, which stops with the test's runtime.
#[derive(Debug)]
pub(crate) struct NameServer {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<BTreeSet<Question>>>,
}

type Answers = Arc<dyn Fn(&Question) -> Reaction + Send + Sync>;

/// The addresses of the queried type.
pub(crate) fn addresses(question: &Question, all: &[&str]) -> Reaction {
    let all = all.iter().map(|ip| ip.parse::<IpAddr>().unwrap());
    let wanted = all.filter(|ip| ip.is_ipv4() == (question.kind == RecordType::A));
    Reaction::Addresses(wanted.collect())
}

impl NameServer {
    pub(crate) async fn start(
        answers: impl Fn(&Question) -> Reaction + Send + Sync + 'static,
    ) -> Self {
        // A port that is free for TCP may be taken for UDP.
        let (tcp, udp) = loop {
            let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()).await {
                break (tcp, udp);
            }
        };
        let address = tcp.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(BTreeSet::new()));
        let answers: Answers = Arc::new(answers);
        tokio::spawn(serve_udp(udp, Arc::clone(&answers), Arc::clone(&asked)));
        tokio::spawn(serve_tcp(tcp, answers, Arc::clone(&asked)));
        Self { address, asked }
    }

    /// Its line in a resolv.conf.
    pub(crate) fn line(&self) -> String {
        format!(
            "nameserver [{}]:{}\n",
            self.address.ip(),
            self.address.port()
        )
    }

    /// Names of its queries of one type.
    pub(crate) fn asked(&self, kind: RecordType) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let asked = asked.iter().filter(|question| question.kind == kind);
        asked.map(|question| question.name.clone()).collect()
    }

    pub(crate) fn was_asked_over(&self, over: Over) -> bool {
        let asked = self.asked.lock().unwrap();
        asked.iter().any(|question| question.over == over)
    }
}

async fn serve_udp(socket: UdpSocket, answers: Answers, asked: Arc<Mutex<BTreeSet<Question>>>) {
    let mut buffer = vec![0; 4096];
    // The system reports here that a client has closed its port.
    loop {
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            continue;
        };
        if let Some(answer) = answer(&buffer[..length], Over::Udp, &answers, &asked) {
            socket.send_to(&answer, from).await.ok();
        }
    }
}

async fn serve_tcp(listener: TcpListener, answers: Answers, asked: Arc<Mutex<BTreeSet<Question>>>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let (answers, asked) = (Arc::clone(&answers), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Some(question) = read(&mut stream).await {
                if let Some(answer) = answer(&question, Over::Tcp, &answers, &asked) {
                    let length = u16::try_from(answer.len()).unwrap();
                    stream.write_all(&length.to_be_bytes()).await.ok();
                    stream.write_all(&answer).await.ok();
                }
            }
        });
    }
}

async fn read(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let length = stream.read_u16().await.ok()?;
    let mut message = vec![0; length.into()];
    stream.read_exact(&mut message).await.ok()?;
    Some(message)
}

fn answer(
    bytes: &[u8],
    over: Over,
    answers: &Answers,
    asked: &Mutex<BTreeSet<Question>>,
) -> Option<Vec<u8>> {
    let message = Message::from_vec(bytes).unwrap();
    let query = message.queries[0].clone();
    let question = Question {
        name: query.name().to_string(),
        kind: query.query_type(),
        over,
        id: message.metadata.id,
    };
    asked.lock().unwrap().insert(question.clone());
    let mut message = message.into_response();
    match answers(&question) {
        Reaction::Addresses(addresses) => {
            for address in addresses {
                let data = match address {
                    IpAddr::V4(address) => RData::A(address.into()),
                    IpAddr::V6(address) => RData::AAAA(address.into()),
                };
                message.add_answer(Record::from_rdata(query.name().clone(), TTL, data));
            }
        }
        Reaction::Code(code) => message.metadata.response_code = code,
        Reaction::Truncated => message.metadata.truncation = true,
        Reaction::Silence => return None,
    }
    Some(message.to_vec().unwrap())
}
