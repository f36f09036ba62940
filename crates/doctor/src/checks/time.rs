//! Clocks: time servers by SNTP, and the plausibility of this machine's.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use net::certificate;
use net::resolve::Resolver;
use tokio::net::UdpSocket;

use super::findings::{SubjectFinding, each};
use crate::site::SiteFacts;

const PORT: u16 = 123;
/// Units: bytes. Source: RFC 4330, section 4.
const PACKET: usize = 48;
/// Version 4, mode client.
const CLIENT: u8 = 0x23;
const MODE_SERVER: u8 = 4;
/// Units: seconds between 1900 and 1970.
const ERA: u64 = 2_208_988_800;
/// Hosts with a larger difference fail the validation of their time, and etcd complains.
const MAX_OFFSET: Duration = Duration::from_secs(2);
/// Of the packets to a server that does not answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
const REMEDY: &str =
    "correct NTP_DEFAULT_SERVER, or start a time server there (chronyd with `allow`)";

pub(super) async fn servers(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    let servers = site.time_servers.iter();
    let subjects = servers.map(|one| (one.clone(), ())).collect();
    each(subjects, REMEDY, |server, ()| async move {
        match offset(&server).await {
            Err(reason) => SubjectFinding::failed(server, reason, REMEDY),
            Ok((is_behind, offset)) => {
                let direction = if is_behind { "behind" } else { "ahead of" };
                let finding = format!(
                    "this machine's clock is {:.3} s {direction} it",
                    offset.as_secs_f64()
                );
                if offset > MAX_OFFSET {
                    let remedy = "synchronise this machine with it: chronyd with `server`, then `chronyc makestep`";
                    SubjectFinding::failed(server, finding, remedy)
                } else {
                    SubjectFinding::passed(server, finding)
                }
            }
        }
    })
    .await
}

/// Whether this clock is behind the server's, and by how much.
async fn offset(server: &str) -> Result<(bool, Duration), String> {
    let (host, port) = match server.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (
            host,
            port.parse().map_err(|_| format!("{port} is no port"))?,
        ),
        _ => (server, PORT),
    };
    let addresses = Resolver::system().lookup(host).await;
    let addresses = addresses.map_err(|e| e.to_string())?;
    let address = addresses.first().ok_or("no address")?;
    let own = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(own).await.map_err(|e| e.to_string())?;
    let target = SocketAddr::new(*address, port);
    socket.connect(target).await.map_err(|e| e.to_string())?;
    let sent = timestamp(SystemTime::now())?;
    let mut packet = [0; PACKET];
    packet[0] = CLIENT;
    packet[40..].copy_from_slice(&sent.to_be_bytes());
    socket.send(&packet).await.map_err(|e| e.to_string())?;
    let mut answer = [0; PACKET];
    let received = tokio::time::timeout(ANSWER_TIMEOUT, socket.recv(&mut answer));
    let length = received
        .await
        .map_err(|_| "no answer: it is not a time server, or UDP port 123 is filtered")?
        .map_err(|e| format!("no answer: {e}"))?;
    let now = timestamp(SystemTime::now())?;
    if length < PACKET || answer[0] & 7 != MODE_SERVER || answer[24..32] != sent.to_be_bytes() {
        return Err("the answer is not of a time server".to_owned());
    }
    // Leap indicator 3, stratum 0 and 16: no time yet.
    if answer[0] >> 6 == 3 || !(1..16).contains(&answer[1]) {
        return Err("it has no synchronised time itself".to_owned());
    }
    let at = |start: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&answer[start..start + 8]);
        i128::from(u64::from_be_bytes(bytes))
    };
    let (sent, now) = (i128::from(sent), i128::from(now));
    let offset = i128::midpoint(at(32) - sent, at(40) - now);
    // 32 bits of the fraction.
    #[expect(clippy::cast_precision_loss, reason = "milliseconds are shown")]
    let seconds = offset.unsigned_abs() as f64 / f64::from(1_u32 << 31) / 2.0;
    let size = Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())?;
    Ok((offset > 0, size))
}

/// Seconds since 1900 with a fraction of 32 bits.
fn timestamp(time: SystemTime) -> Result<u64, String> {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_err(|_| "this machine's clock is before 1970")?;
    let fraction = (u64::from(since.subsec_nanos()) << 32) / 1_000_000_000;
    Ok((since.as_secs().wrapping_add(ERA) << 32) | fraction)
}

/// Without a time server: the clock is not before dates that have passed.
pub(super) async fn clock(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    let found = tokio::task::spawn_blocking(move || latest(&site)).await;
    let Ok(Some((date, source))) = found else {
        return Vec::new();
    };
    match date.duration_since(SystemTime::now()) {
        // Clocks of other machines, which may have written them, differ, too.
        Ok(ahead) if ahead > MAX_OFFSET => vec![SubjectFinding::failed(
            "",
            format!(
                "this machine's clock is at least {} s behind: {source} is of then",
                ahead.as_secs()
            ),
            "set the clock: certificates are not valid yet, and hosts get wrong times",
        )],
        _ => vec![SubjectFinding::passed(
            "",
            format!("this machine's clock is not before the date of {source}"),
        )],
    }
}

/// The latest date of which it is known that it has passed, and its source.
fn latest(site: &SiteFacts) -> Option<(SystemTime, String)> {
    let mut dates = Vec::new();
    for file in &site.certificates {
        let shown = file.path.display().to_string();
        if let Ok(modified) = std::fs::metadata(&file.path).and_then(|found| found.modified()) {
            dates.push((modified, shown.clone()));
        }
        let pem = std::fs::read(&file.path).unwrap_or_default();
        let leaf = certificate::of_pem(&pem).and_then(|chain| certificate::read(&chain[0]));
        if let Ok(leaf) = leaf {
            dates.push((leaf.not_before, format!("the certificate {shown}")));
        }
    }
    for folder in &site.folders {
        if let Ok(modified) = std::fs::metadata(&folder.path).and_then(|found| found.modified()) {
            dates.push((modified, folder.path.display().to_string()));
        }
    }
    dates.into_iter().max_by_key(|(date, _)| *date)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;
    use crate::{CheckStatus, DataFolder};

    /// A time server that is `ahead`, of `stratum`; its address.
    async fn server(ahead: Duration, stratum: u8) -> String {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            let mut packet = [0; PACKET];
            let (_, client) = socket.recv_from(&mut packet).await.unwrap();
            let now = timestamp(SystemTime::now() + ahead).unwrap().to_be_bytes();
            let mut answer = [0; PACKET];
            answer[0] = 0x24;
            answer[1] = stratum;
            answer[24..32].copy_from_slice(&packet[40..]);
            answer[32..40].copy_from_slice(&now);
            answer[40..].copy_from_slice(&now);
            socket.send_to(&answer, client).await.unwrap();
        });
        address
    }

    async fn check(server: String) -> SubjectFinding {
        let site = SiteFacts {
            time_servers: vec![server],
            ..SiteFacts::default()
        };
        servers(Arc::new(site)).await.remove(0)
    }

    #[tokio::test]
    async fn offsets_are_measured() {
        let found = check(server(Duration::ZERO, 3).await).await;
        assert_eq!(found.status, CheckStatus::Passed, "{found:?}");
        let found = check(server(Duration::from_secs(90), 3).await).await;
        assert_eq!(found.status, CheckStatus::Failed);
        assert!(found.finding.contains("s behind it"), "{found:?}");
        assert!(
            found.finding.contains("is 90.0") || found.finding.contains("is 89.9"),
            "{found:?}"
        );
        assert!(found.remedy.contains("chrony"), "{found:?}");
    }

    #[tokio::test]
    async fn servers_without_time_fail() {
        let found = check(server(Duration::ZERO, 16).await).await;
        assert_eq!(found.status, CheckStatus::Failed);
        assert!(found.finding.contains("synchronised"), "{found:?}");
        let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = silent.local_addr().unwrap().to_string();
        drop(silent);
        let found = check(address).await;
        assert!(found.finding.contains("no answer"), "{found:?}");
        assert!(found.remedy.contains("NTP_DEFAULT_SERVER"), "{found:?}");
    }

    #[tokio::test]
    async fn a_clock_before_known_dates_fails() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        fs::write(&path, "x").unwrap();
        let site = SiteFacts {
            folders: vec![DataFolder {
                path: path.clone(),
                required_bytes: 0,
            }],
            ..SiteFacts::default()
        };
        let site = Arc::new(site);
        assert_eq!(
            clock(Arc::clone(&site)).await[0].status,
            CheckStatus::Passed
        );
        let later = SystemTime::now() + Duration::from_hours(1);
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(later)
            .unwrap();
        let found = clock(site).await.remove(0);
        assert_eq!(found.status, CheckStatus::Failed);
        assert!(found.remedy.contains("set the clock"), "{found:?}");
    }
}
