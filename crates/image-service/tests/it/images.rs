//! Full images.

use reqwest::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, RANGE,
};

use crate::world::{CHANGED, ID, OS_VERSION, World, own_file};

#[tokio::test]
async fn an_image_is_the_base_with_the_configuration_in_it() {
    let world = World::new().await;
    let response = world.get(&World::full_iso()).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let headers = response.headers().clone();
    assert_eq!(headers[CONTENT_LENGTH], world.base.len().to_string());
    assert_eq!(
        headers[CONTENT_DISPOSITION],
        format!("attachment; filename={ID}-discovery.iso")
    );
    assert_eq!(headers[ACCEPT_RANGES], "bytes");
    assert_eq!(headers[LAST_MODIFIED], CHANGED);
    assert_eq!(headers[CONTENT_TYPE], "application/x-cd-image");
    let iso = response.bytes().await.unwrap();
    assert!(iso == world.expected_iso(""));
    let start = world.start_of("images/ignition.img");
    let area = &iso[start..start + ignition::archive::EMBED_AREA];
    let config = ignition::archive::config(area).unwrap().unwrap();
    assert_eq!(config, br#"{"ignition":{"version":"3.1.0"}}"#);
    let mut asked = world.api.asked();
    asked.sort();
    let base = format!("/api/assisted-install/v2/infra-envs/{ID}");
    let files =
        format!("{base}/downloads/files?discovery_iso_type=full-iso&file_name=discovery.ign");
    assert_eq!(asked, [base, files]);
}

#[tokio::test]
async fn kernel_arguments_continue_every_line() {
    let world = World::new().await;
    world.api.set(|answers| {
        let text = r#"[{"operation":"append","value":"console=ttyS0"},{"operation":"append","value":"debug"}]"#;
        answers.kernel_arguments = Some(text.to_owned());
    });
    let iso = world.bytes(&World::full_iso()).await;
    assert!(iso == world.expected_iso(" console=ttyS0 debug"));
}

#[tokio::test]
async fn an_embedded_configuration_is_replaced_whole() {
    let mut world = World::new().await;
    let start = world.start_of("images/ignition.img");
    let path = crate::world::own_file(world.data.path());
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let old = vec![0xaa; ignition::archive::EMBED_AREA];
    std::os::unix::fs::FileExt::write_all_at(&file, &old, start as u64).unwrap();
    let iso = world.bytes(&World::full_iso()).await;
    world.base[start..start + ignition::archive::EMBED_AREA].fill(0);
    assert!(iso == world.expected_iso(""));
}

#[tokio::test]
async fn all_spellings_of_the_url_give_the_same_image() {
    let world = World::new().await;
    let iso = world.bytes(&World::full_iso()).await;
    for path in [
        format!("/byid/{ID}/{OS_VERSION}/x86_64/full.iso"),
        format!("/images/{ID}?version=4.18&type=full-iso&arch=x86_64"),
        format!("/images/{ID}?version=4.18&type=full-iso"),
    ] {
        assert!(world.bytes(&path).await == iso, "{path}");
    }
}

#[tokio::test]
async fn ranges_are_parts_of_the_whole() {
    let world = World::new().await;
    let whole = world.expected_iso("");
    let length = whole.len();
    let area = world.start_of("images/ignition.img");
    let last = length - 1;
    for (range, low, high) in [
        ("bytes=0-0".to_owned(), 0, 1),
        ("bytes=32768-32775".to_owned(), 32768, 32776),
        (
            format!("bytes={}-{}", area - 10, area + 100),
            area - 10,
            area + 101,
        ),
        (format!("bytes={}-", length - 5), length - 5, length),
        ("bytes=-7".to_owned(), length - 7, length),
        (format!("bytes=5-{}", length * 2), 5, length),
    ] {
        let request = world.get(&World::full_iso()).header(RANGE, &range);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 206, "{range}");
        let expected = format!("bytes {low}-{}/{length}", high - 1);
        assert_eq!(response.headers()[CONTENT_RANGE], expected);
        assert_eq!(response.headers()[CONTENT_LENGTH], (high - low).to_string());
        assert!(
            response.bytes().await.unwrap() == whole[low..high],
            "{range}"
        );
    }
    let request = world
        .get(&World::full_iso())
        .header(RANGE, format!("bytes={length}-{last}0"));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 416);
    assert_eq!(
        response.headers()[CONTENT_RANGE],
        format!("bytes */{length}")
    );
    assert_eq!(
        response.text().await.unwrap(),
        "invalid range: failed to overlap\n"
    );
}

#[tokio::test]
async fn several_ranges_come_in_parts() {
    let world = World::new().await;
    let request = world
        .get(&World::full_iso())
        .header(RANGE, "bytes=32769-32773,-3");
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 206);
    let kind = response.headers()[CONTENT_TYPE]
        .to_str()
        .unwrap()
        .to_owned();
    let boundary = kind
        .strip_prefix("multipart/byteranges; boundary=")
        .unwrap();
    let announced = response.headers()[CONTENT_LENGTH]
        .to_str()
        .unwrap()
        .to_owned();
    let body = response.bytes().await.unwrap();
    assert_eq!(announced, body.len().to_string());
    let length = world.base.len();
    let expected = format!(
        "--{boundary}\r\nContent-Range: bytes 32769-32773/{length}\r\nContent-Type: application/x-cd-image\r\n\r\nCD001\
         \r\n--{boundary}\r\nContent-Range: bytes {}-{}/{length}\r\nContent-Type: application/x-cd-image\r\n\r\n\0\0\0\
         \r\n--{boundary}--\r\n",
        length - 3,
        length - 1,
    );
    assert_eq!(body, expected);
}

#[tokio::test]
async fn head_says_the_same_without_the_bytes() {
    let world = World::new().await;
    let url = format!("{}{}", world.url, World::full_iso());
    let response = world.client.head(&url).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(
        response.headers()[CONTENT_LENGTH],
        world.base.len().to_string()
    );
    assert!(response.bytes().await.unwrap().is_empty());
    let request = world.client.head(&url).header(RANGE, "bytes=0-9");
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 206);
    assert_eq!(response.headers()[CONTENT_LENGTH], "10");
}

#[tokio::test]
async fn conditions_are_honoured() {
    let world = World::new().await;
    let path = World::full_iso();
    let first = world.get(&path).send().await.unwrap();
    let tag = first.headers()[ETAG].clone();
    let again = world
        .get(&path)
        .header(IF_NONE_MATCH, &tag)
        .send()
        .await
        .unwrap();
    assert_eq!(again.status(), 304);
    let again = world
        .get(&path)
        .header(IF_MODIFIED_SINCE, CHANGED)
        .send()
        .await
        .unwrap();
    assert_eq!(again.status(), 304);
    for held in [tag.to_str().unwrap(), CHANGED] {
        let request = world
            .get(&path)
            .header(RANGE, "bytes=0-9")
            .header(IF_RANGE, held);
        assert_eq!(request.send().await.unwrap().status(), 206);
    }
    world.api.set(|answers| answers.ignition = b"{}".to_vec());
    let request = world
        .get(&path)
        .header(RANGE, "bytes=0-9")
        .header(IF_RANGE, &tag);
    let changed = request.send().await.unwrap();
    assert_eq!(
        changed.status(),
        200,
        "another configuration is another image"
    );
    assert_eq!(
        changed.headers()[CONTENT_LENGTH],
        world.base.len().to_string()
    );
}

#[tokio::test]
async fn credentials_are_passed_on() {
    let world = World::new().await;
    let claims = format!(r#"{{"sub":"{ID}"}}"#);
    let payload = base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, claims);
    let token = format!("h.{payload}.s");
    for (path, header, expected) in [
        (
            format!("/byapikey/{token}/4.18/x86_64/full.iso"),
            None,
            format!("api_key={token}"),
        ),
        (
            format!("/bytoken/{token}/4.18/x86_64/full.iso"),
            None,
            format!("image-token={token}"),
        ),
        (
            format!("{}?api_key=k", World::full_iso()),
            None,
            "api_key=k".to_owned(),
        ),
        (
            format!("{}?image_token=t", World::full_iso()),
            None,
            "image-token=t".to_owned(),
        ),
        (
            World::full_iso(),
            Some("Bearer b"),
            "authorization=Bearer b".to_owned(),
        ),
    ] {
        let mut request = world.get(&path);
        if let Some(value) = header {
            request = request.header("Authorization", value);
        }
        assert_eq!(request.send().await.unwrap().status(), 200, "{path}");
        let asked = world.api.asked();
        assert_eq!(asked.len(), 2);
        assert!(
            asked.iter().all(|line| line.contains(&expected)),
            "{expected} in {asked:?}"
        );
    }
}

#[tokio::test]
async fn checksums_are_those_of_the_images() {
    use sha2::Digest as _;
    let world = World::with(|settings| {
        settings.image_service_base_url = Some("http://h".to_owned());
    })
    .await;
    for name in ["full", "minimal"] {
        let path = format!("/byid/{ID}/4.18/x86_64/{name}.iso");
        let image = world.bytes(&path).await;
        let expected = hex::encode(sha2::Sha256::digest(&image));
        let text = world.bytes(&format!("{path}/sha256")).await;
        let expected = format!("{expected}  {ID}-discovery.iso\n");
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
    let other = world.get(&format!("{}/md5", World::full_iso())).send();
    let other = other.await.unwrap();
    assert_eq!(other.status(), 404);
    assert!(other.text().await.unwrap().contains("expected sha256"));
}

#[tokio::test]
async fn readers_keep_an_image_that_is_replaced() {
    let world = World::new().await;
    let path = World::full_iso();
    let mut reader = world.get(&path).send().await.unwrap();
    let mut whole = reader.chunk().await.unwrap().unwrap().to_vec();
    let other = world.data.path().join("other");
    std::fs::write(&other, vec![7; 1000]).unwrap();
    std::fs::rename(other, own_file(world.data.path())).unwrap();
    let second = world.bytes(&path).await;
    while let Some(chunk) = reader.chunk().await.unwrap() {
        whole.extend(chunk);
    }
    assert!(whole == world.expected_iso(""));
    assert!(second == whole, "until the service restarts");
}

#[tokio::test]
async fn an_embedded_agent_is_in_every_image() {
    let world = World::with(|settings| {
        settings.agent_dir = settings.data_dir.join("agents");
        settings.image_service_base_url = Some("http://images.example".to_owned());
    })
    .await;
    world.api.set(|answers| answers.embedded_agent = true);
    let url = world.get(&World::full_iso());
    let response = url.send().await.unwrap();
    assert_eq!(response.status(), 409);
    let text = response.text().await.unwrap();
    assert!(
        text.contains("AGENT_DIR") && text.contains("atoll-agent-x86_64"),
        "{text}"
    );

    // Longer than the ignition area, also packed.
    let mut state = 1_u64;
    let program: Vec<u8> = std::iter::repeat_with(|| {
        // xorshift: noise, which does not compress.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .flatten()
    .take(2 * ignition::archive::EMBED_AREA)
    .collect();
    let folder = world.data.path().join("agents");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("atoll-agent-x86_64"), &program).unwrap();
    let has_agent = |bytes: &[u8]| {
        let files = ignition::archive::read(bytes).unwrap();
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names[0], "config.ign");
        let agent = files
            .iter()
            .find(|file| file.name == "/usr/libexec/atoll-agent");
        assert!(agent.is_some_and(|file| file.data == program && file.mode == 0o100_755));
    };
    for path in [
        World::full_iso(),
        World::full_iso().replace("full", "minimal"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("discovery.iso");
        std::fs::write(&file, world.bytes(&path).await).unwrap();
        let image = image_service::image::BaseImage::open(&file).unwrap();
        has_agent(&image.embedded().unwrap());
    }
    let initrd = world
        .bytes(&format!("/images/{ID}/pxe-initrd?version=4.18"))
        .await;
    has_agent(
        &initrd[world
            .length_of("images/pxeboot/initrd.img")
            .next_multiple_of(4)..],
    );
}
