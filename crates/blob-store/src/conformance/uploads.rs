//! Conformance tests of uploads.

use bytes::Bytes;
use futures_util::{TryStreamExt as _, stream};
use model::time::Timestamp;

use super::fixtures::{append, read, repository, start};
use crate::{ContentStore, StoreError};
use oci::{Algorithm, Digest};

/// Chunks append in order only; bytes before an interruption stay.
pub async fn uploads_resume_and_keep_order<S: ContentStore>(store: &S) {
    let repository = repository("resumed");
    let upload = start(store, &repository).await;
    assert_eq!(
        append(store, &repository, upload, Some(0), b"hello")
            .await
            .expect("append"),
        5
    );
    for offset in [0, 4, 6] {
        let refused = append(store, &repository, upload, Some(offset), b"x").await;
        assert!(
            matches!(refused, Err(StoreError::OutOfOrder { received: 5 })),
            "{refused:?}"
        );
    }
    let pieces = [
        Ok(Bytes::from_static(b" wor")),
        Err(std::io::Error::other("gone")),
    ];
    let cut = store
        .append_upload(&repository, upload, None, stream::iter(pieces))
        .await;
    assert!(matches!(cut, Err(StoreError::Interrupted(_))), "{cut:?}");
    assert_eq!(
        store.upload_size(&repository, upload).await.expect("size"),
        9
    );
    append(store, &repository, upload, Some(9), b"ld")
        .await
        .expect("append");
    let part = store.open_upload(&repository, upload, 3, 5).await;
    let part: Vec<Bytes> = part.expect("open").try_collect().await.expect("read");
    assert_eq!(part.concat(), b"lo wo");
    let digest = Digest::sha256(b"hello world");
    let unknown = store.blob_size(&repository, &digest).await;
    assert!(
        matches!(unknown, Err(StoreError::UnknownBlob(_))),
        "visible before it is whole"
    );
    store
        .finish_upload(&repository, upload, &digest)
        .await
        .expect("finish");
    assert_eq!(
        read(store, &repository, &digest, 0..11).await,
        b"hello world"
    );
    let gone = store.upload_size(&repository, upload).await;
    assert!(matches!(gone, Err(StoreError::UnknownUpload)), "{gone:?}");
    let gone = store.open_upload(&repository, upload, 0, 1).await;
    assert!(matches!(gone, Err(StoreError::UnknownUpload)), "opened");
    let cancelled = start(store, &repository).await;
    store
        .cancel_upload(&repository, cancelled)
        .await
        .expect("cancel");
    for gone in [
        store.cancel_upload(&repository, cancelled).await,
        store.finish_upload(&repository, cancelled, &digest).await,
        append(store, &repository, cancelled, None, b"x")
            .await
            .map(drop),
    ] {
        assert!(matches!(gone, Err(StoreError::UnknownUpload)), "{gone:?}");
    }
}

/// An upload with another digest than claimed is dropped.
pub async fn wrong_digests_leave_nothing<S: ContentStore>(store: &S) {
    let repository = repository("wrong");
    for algorithm in [Algorithm::Sha256, Algorithm::Sha512] {
        let upload = start(store, &repository).await;
        append(store, &repository, upload, None, b"other")
            .await
            .expect("append");
        let claimed = Digest::of(algorithm, b"claimed");
        let refused = store.finish_upload(&repository, upload, &claimed).await;
        assert!(
            matches!(refused, Err(StoreError::WrongDigest { .. })),
            "{refused:?}"
        );
        for digest in [claimed, Digest::sha256(b"other")] {
            let unknown = store.blob_size(&repository, &digest).await;
            assert!(
                matches!(unknown, Err(StoreError::UnknownBlob(_))),
                "{unknown:?}"
            );
        }
        let gone = store.upload_size(&repository, upload).await;
        assert!(matches!(gone, Err(StoreError::UnknownUpload)), "{gone:?}");
    }
}

/// Uploads without a byte since a time are purged; later ones stay.
pub async fn abandoned_uploads_are_purged<S: ContentStore>(store: &S) {
    let repository = repository("abandoned");
    let upload = start(store, &repository).await;
    append(store, &repository, upload, None, b"x")
        .await
        .expect("append");
    let purge = async |before| store.purge_uploads(before).await.expect("purge");
    purge(Timestamp::UNIX_EPOCH).await;
    let size = store.upload_size(&repository, upload).await.expect("size");
    assert_eq!(size, 1);
    assert!(purge(Timestamp::MAX_UTC).await >= 1);
    let gone = store.upload_size(&repository, upload).await;
    assert!(matches!(gone, Err(StoreError::UnknownUpload)), "{gone:?}");
}
