//! Archives on a web server: described, verified and published like those of a folder.

use std::path::PathBuf;

use mirror::archive::{self, ArchiveSource, SetReport};
use mirror::progress::RunProgress;
use model::Error;

use crate::faults::world::{World, client, there};
use crate::faulty::Faulty;
use crate::server::Server;
use crate::web_server::{WebFault, WebServer};

/// Archives of a run, in the folder `pub` of a web server's folder.
struct WebWorld {
    world: World,
    folder: PathBuf,
}

impl WebWorld {
    async fn start() -> Self {
        let world = World::start().await;
        let out = world.pack(&client(None), "web").await.unwrap();
        let folder = world.path("www");
        std::fs::rename(out, folder.join("pub")).unwrap();
        Self { world, folder }
    }

    async fn serve(&self, fault: WebFault) -> WebServer {
        WebServer::start(&self.folder, fault).await
    }

    async fn publish(&self, from: impl Into<ArchiveSource>, to: &Server) -> Result<(), Error> {
        let to = Faulty::start(to, Vec::new()).await;
        self.world.publish(&client(None), from, &to).await
    }

    /// The error of reading from a server with a fault, in all commands.
    async fn refused(&self, fault: WebFault) -> String {
        let server = self.serve(fault).await;
        let described = describe(server.source("pub/")).await.unwrap_err().chain();
        let verified = match verify(server.source("pub/")).await {
            Ok(report) => faults(&report).join("\n"),
            Err(error) => error.chain(),
        };
        let target = Server::start().await;
        let published = self.publish(server.source("pub/"), &target).await;
        assert_eq!(published.unwrap_err().chain(), described);
        assert_eq!(verified, described);
        described.replace(&server.address, "HOST")
    }
}

async fn verify(source: ArchiveSource) -> Result<SetReport, Error> {
    let verify = move || archive::verify(source, None, &RunProgress::default());
    tokio::task::spawn_blocking(verify).await.unwrap()
}

async fn describe(source: ArchiveSource) -> Result<(), Error> {
    let describe = move || archive::describe(source).map(drop);
    tokio::task::spawn_blocking(describe).await.unwrap()
}

fn faults(report: &SetReport) -> Vec<String> {
    report.faults.iter().map(Error::chain).collect()
}

#[tokio::test]
async fn archives_of_a_url_are_those_of_the_folder() {
    let web = WebWorld::start().await;
    let server = web.serve(WebFault::Nothing).await;
    let (by_folder, by_url) = (Server::start().await, Server::start().await);
    let folder = web.folder.join("pub");
    web.publish(&folder, &by_folder).await.unwrap();
    web.publish(server.source("pub/"), &by_url).await.unwrap();
    let expected = there(&by_folder).await;
    let found = there(&by_url).await;
    // Metadata has the time of its publication.
    let names = |all: &std::collections::BTreeMap<_, _>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(&expected));
    for (name, digest) in expected
        .iter()
        .filter(|(name, _)| !name.contains("metadata"))
    {
        assert_eq!(found.get(name), Some(digest), "{name}");
    }
    for path in ["pub/", "pub/mirror_seq1_000000.tar"] {
        let (local, report) = (folder.clone(), verify(server.source(path)).await.unwrap());
        let local = archive::verify(&local, None, &RunProgress::default()).unwrap();
        assert_eq!(report.members, local.members);
        assert_eq!(report.hashed_bytes, local.hashed_bytes);
        assert_eq!(faults(&report), Vec::<String>::new());
        describe(server.source(path)).await.unwrap();
    }
}

#[tokio::test]
async fn slow_and_broken_answers_are_resumed() {
    let web = WebWorld::start().await;
    for fault in [
        WebFault::Broken,
        WebFault::Short,
        WebFault::Slow,
        WebFault::OnlyModified,
        WebFault::Status(503, 3),
    ] {
        let server = web.serve(fault.clone()).await;
        let report = verify(server.source("pub/")).await.unwrap();
        assert_eq!(faults(&report), Vec::<String>::new(), "{fault:?}");
        let target = Server::start().await;
        let published = web.publish(server.source("pub/"), &target).await;
        published.unwrap_or_else(|e| panic!("{fault:?}: {}", e.chain()));
    }
}

#[tokio::test]
async fn a_file_that_changes_is_an_error() {
    let web = WebWorld::start().await;
    let all = {
        let server = web.serve(WebFault::Nothing).await;
        web.publish(server.source("pub/"), &Server::start().await)
            .await
            .unwrap();
        server.requests().len()
    };
    for after in [1, 2, all / 2, all - 2] {
        for fault in [WebFault::Changed(after), WebFault::ChangedUnnoticed(after)] {
            let server = web.serve(fault.clone()).await;
            let target = Server::start().await;
            let published = web.publish(server.source("pub/"), &target).await;
            let text = published.unwrap_err().chain();
            let is_named =
                text.contains("has changed on the server") && text.contains(&server.address);
            assert!(is_named, "{fault:?}: {text}");
        }
    }
    let verified = {
        let server = web.serve(WebFault::Nothing).await;
        verify(server.source("pub/")).await.unwrap();
        server.requests().len()
    };
    let mut found = 0;
    for after in 1..verified {
        let server = web.serve(WebFault::Changed(after)).await;
        let faults = match verify(server.source("pub/")).await {
            Ok(report) => faults(&report),
            Err(error) => vec![error.chain()],
        };
        let is_named = |it: &String| it.contains("has changed on the server");
        assert!(faults.iter().all(is_named), "{after}: {faults:?}");
        found += usize::from(!faults.is_empty());
    }
    // Later changes, of a file that has been read, and earlier ones, of one that has not, are none for the run.
    assert!(found > 0, "{verified} requests");
}

/// A round trip for each member would take longer than the transfer itself.
#[tokio::test]
async fn a_verification_reads_a_file_as_one_response() {
    let web = WebWorld::start().await;
    let path = web.folder.join("pub/mirror_seq1_000000.tar");
    let archive = std::fs::File::options().append(true).open(&path).unwrap();
    // Before its end.
    archive
        .set_len(path.metadata().unwrap().len() - 1024)
        .unwrap();
    let mut archive = tar::Builder::new(archive);
    let content = vec![1; 64 * 1024];
    for number in 0..50 {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        let name = format!("extra/{number}");
        archive.append_data(&mut header, name, &*content).unwrap();
    }
    archive.finish().unwrap();
    let server = web.serve(WebFault::Nothing).await;
    let report = verify(server.source("pub/")).await.unwrap();
    assert!(report.members > 50, "{}", report.members);
    let requests: Vec<_> = server
        .requests()
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    assert!(requests.len() < 15, "{requests:?}");
}

#[tokio::test]
async fn errors_name_the_lack_of_the_server() {
    let web = WebWorld::start().await;
    let elsewhere = web.serve(WebFault::Nothing).await;
    let mut all = Vec::new();
    for fault in [
        WebFault::NoRanges,
        WebFault::NoVersion,
        WebFault::OtherRange,
        WebFault::Redirected(format!("http://{}", elsewhere.address)),
        WebFault::Status(401, usize::MAX),
        WebFault::Status(403, usize::MAX),
        WebFault::Status(404, usize::MAX),
        WebFault::Status(418, usize::MAX),
    ] {
        let text = web.refused(fault).await;
        all.push(text.replace(&elsewhere.address, "ELSEWHERE"));
    }
    assert_eq!(elsewhere.requests().len(), 0);
    insta::assert_snapshot!(all.join("\n"), @r"
    http://HOST/pub/mirror_seq1_000000.tar: the server answers a range request (RFC 9110) with the whole file: it has to support ranges, as nginx, Apache and the static files of atoll do; or download the archives, and name their folder
    http://HOST/pub/mirror_seq1_000000.tar: the server sends neither a strong ETag nor Last-Modified, without which a change of the file during the run is not noticed: download the archives, and name their folder
    http://HOST/pub/mirror_seq1_000000.tar: the server answers a range request with another range
    http://HOST/pub/: it redirects to another server, http://ELSEWHERE/pub/: name that URL if it is the right one
    http://HOST/pub/: it requires a login: the authentication file has none for this host
    http://HOST/pub/ answered 403 Forbidden: where listings are off, name the first file of the set
    file http://HOST/pub/ was not found
    http://HOST/pub/: the server answered 418 I'm a teapot
    ");
}

#[tokio::test]
async fn a_page_without_archives_is_an_error_and_leads_nowhere() {
    let web = WebWorld::start().await;
    let elsewhere = web.serve(WebFault::Nothing).await;
    let page = format!(
        "<a href=\"http://{0}/pub/mirror_seq1_000000.tar\">x</a><a href=\"//{0}/pub/mirror_seq1_000000.tar\">x</a>\
         <a href=\"../pub/mirror_seq1_000000.tar\">x</a><a href=\"javascript:alert(1)//x.tar\">x</a>\
         <a href=\"below/\">x</a>",
        elsewhere.address
    );
    let server = WebServer::with_page(&web.folder, WebFault::Nothing, Some(page)).await;
    std::fs::create_dir(web.folder.join("empty")).unwrap();
    let error = verify(server.source("empty/")).await.unwrap_err().chain();
    assert!(
        error.contains("no archives found") && error.contains("below/"),
        "{error}"
    );
    assert_eq!(server.requests().len(), 1);
    assert_eq!(elsewhere.requests().len(), 0);
}

// limit: page of a listing
#[tokio::test]
async fn a_listing_is_bounded() {
    let web = WebWorld::start().await;
    let link = "<a href=\"mirror_seq1_000000.tar\">x</a>";
    for (size, is_read) in [(16 << 20, true), ((16 << 20) + 1, false)] {
        let page = format!("{link}{}", " ".repeat(size - link.len()));
        let server = WebServer::with_page(&web.folder, WebFault::Nothing, Some(page)).await;
        let described = describe(server.source("pub/")).await.map_err(|e| e.chain());
        assert_eq!(described.is_ok(), is_read, "{described:?}");
    }
}

#[tokio::test]
async fn the_sequence_and_the_gap_of_a_listing_are_reported() {
    let web = WebWorld::start().await;
    let (folder, server) = (web.folder.join("pub"), web.serve(WebFault::Nothing).await);
    let file = folder.join("mirror_seq1_000000.tar");
    std::fs::copy(&file, folder.join("mirror_seq2_000000.tar")).unwrap();
    let error = describe(server.source("pub/")).await.unwrap_err().chain();
    assert!(
        error.contains("sequences 1, 2: name a file of one"),
        "{error}"
    );
    describe(server.source("pub/mirror_seq1_000000.tar"))
        .await
        .unwrap();
    std::fs::rename(&file, folder.join("mirror_seq1_000001.tar")).unwrap();
    let error = describe(server.source("pub/mirror_seq1_000001.tar")).await;
    let error = error.unwrap_err().chain();
    assert!(
        error.contains("mirror_seq1_000000.tar was not found"),
        "{error}"
    );
    // Given another name, it is a set of its own.
    std::fs::rename(
        folder.join("mirror_seq1_000001.tar"),
        folder.join("own.tar"),
    )
    .unwrap();
    verify(server.source("pub/own.tar")).await.unwrap();
}

#[tokio::test]
async fn a_login_is_not_sent_in_clear() {
    let web = WebWorld::start().await;
    let server = web.serve(WebFault::Status(401, usize::MAX)).await;
    let source = server.source_with("pub/", Some("Basic bWU6c2VjcmV0"));
    let error = describe(source).await.unwrap_err().chain();
    assert!(error.contains("not sent over plain HTTP"), "{error}");
    assert!(!error.contains("bWU6c2VjcmV0"), "{error}");
    let requests = server.requests();
    assert!(!requests.is_empty());
    assert!(
        requests
            .iter()
            .all(|(_, headers)| !headers.contains_key("authorization"))
    );
}
