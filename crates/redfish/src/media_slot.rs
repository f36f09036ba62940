//! A virtual medium as read: its content, its actions, its limits.

use url::Url;

use super::boot_url::{is_loaded, protocol_name};
use super::document::RedfishDocument;
use super::error::BmcError;
use super::image_address::shown_address;
use super::insert_form::InsertWay;
use super::link::RedfishPath;

/// Largest image of a BMC that copies it into its own memory before the host boots. Units: bytes.
const UPLOAD_LIMIT: u64 = 150_000_000;
/// Media types that boot an image.
const BOOTABLE: &[&str] = &["CD", "DVD"];

/// A virtual CD drive.
#[derive(Debug, Clone)]
pub struct MediaSlot {
    /// The last element of its path.
    pub name: String,
    /// Whether an image is inserted.
    pub is_inserted: bool,
    /// The image that the BMC names, without its query; some keep it after an eject.
    pub image: Option<String>,
    pub(super) document: RedfishDocument,
    pub(super) insert: Option<RedfishPath>,
    pub(super) eject: Option<RedfishPath>,
}

impl MediaSlot {
    /// The drive in a resource; none for another kind of medium.
    pub(super) fn of(document: RedfishDocument) -> Result<Option<Self>, BmcError> {
        let kinds = document.texts("/MediaTypes").unwrap_or_default();
        let is_bootable = |kind: &String| BOOTABLE.contains(&kind.to_uppercase().as_str());
        if !kinds.iter().any(is_bootable) {
            return Ok(None);
        }
        let action = |name: &str| document.link(&format!("/Actions/#VirtualMedia.{name}/target"));
        Ok(Some(Self {
            name: document.path.name().to_owned(),
            is_inserted: is_inserted(&document),
            image: document.text("/Image").map(shown_address),
            insert: action("InsertMedia")?,
            eject: action("EjectMedia")?,
            document,
        }))
    }

    /// Whether an image can be inserted in this way.
    pub(super) fn has_way(&self, way: InsertWay) -> bool {
        self.insert.is_some() || way == InsertWay::Properties
    }

    /// Whether `image` is inserted. A whole URL decides by its path; other spellings of the address, by the file name.
    pub(super) fn holds(&self, image: &Url) -> bool {
        let [address, name] = ["/Image", "/ImageName"].map(|it| self.document.text(it));
        let shown = address.and_then(|it| Url::parse(it).ok());
        if let Some(shown) = shown.filter(|it| it.scheme() == image.scheme() && it.has_host()) {
            return self.is_inserted && shown.path() == image.path();
        }
        let file = file_name(image.path());
        let path = |name: &str| name.split(['?', '#']).next().unwrap_or_default().to_owned();
        let is_image = |name: &str| file_name(&path(name)) == file;
        self.is_inserted && [address, name].into_iter().flatten().any(is_image)
    }

    /// Whether exactly the URL of `image` is inserted.
    pub(super) fn holds_exactly(&self, image: &Url) -> bool {
        self.is_inserted && self.document.text("/Image") == Some(image.as_str())
    }

    /// Checks that the drive takes an image of this URL and size. Units: bytes.
    pub(super) fn check(&self, image: &Url, size_bytes: Option<u64>) -> Result<(), BmcError> {
        let of_action = |name: &str| {
            let action =
                format!("/Actions/#VirtualMedia.InsertMedia/{name}@Redfish.AllowableValues");
            self.document.texts(&action)
        };
        let protocols = of_action("TransferProtocolType").unwrap_or_default();
        if !is_loaded(image, &protocols) {
            let wanted = protocol_name(image);
            return Err(unsupported(if protocols.is_empty() {
                format!(
                    "it names no protocols, so it takes images by HTTP, HTTPS, NFS and CIFS, and not by {wanted}"
                )
            } else {
                let named = protocols.join(", ");
                format!(
                    "it loads images by {named}, not by {wanted}: offer the image by one of them"
                )
            }));
        }
        let is_copied = of_action("TransferMethod").is_some_and(|it| it == ["Upload"]);
        match size_bytes {
            Some(size) if is_copied && size > UPLOAD_LIMIT => Err(unsupported(format!(
                "it copies images into its memory, and this one has {size} bytes, more than {UPLOAD_LIMIT}; use the \
                 minimal image, or UEFI HTTP boot"
            ))),
            _ => Ok(()),
        }
    }

    /// The content, for messages.
    pub(super) fn content(&self) -> String {
        match (self.is_inserted, &self.image) {
            (false, _) => "no medium".to_owned(),
            (true, Some(image)) => image.clone(),
            (true, None) => "a medium without a name".to_owned(),
        }
    }
}

pub(super) fn unsupported(reason: String) -> BmcError {
    BmcError::Unsupported {
        feature: "usable virtual media",
        reason,
    }
}

/// Whether an image is inserted. Either property may be the one that is right after an eject: Supermicro keeps `Image` and
/// reads `NotConnected`, sushy-tools always reads `URI`.
fn is_inserted(document: &RedfishDocument) -> bool {
    if document.text("/ConnectedVia") == Some("NotConnected") {
        return false;
    }
    let has_image = document.text("/Image").is_some();
    document.flag("/Inserted").unwrap_or(has_image)
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::document::tests::document;
    use super::*;

    fn slot(body: Value) -> MediaSlot {
        let mut body = body;
        body["MediaTypes"] = json!(["CD", "DVD"]);
        MediaSlot::of(document(body)).unwrap().unwrap()
    }

    #[test]
    fn only_drives_for_discs_are_taken() {
        for (types, is_taken) in [
            (json!(["CD", "DVD"]), true),
            (json!(["dvd"]), true),
            (json!(["USBStick"]), false),
            (Value::Null, false),
        ] {
            let read = MediaSlot::of(document(json!({ "MediaTypes": types })));
            assert_eq!(read.unwrap().is_some(), is_taken, "{types}");
        }
    }

    #[test]
    fn each_vendors_empty_drive_reads_as_empty() {
        for (body, expected) in [
            (
                json!({ "Inserted": true, "ConnectedVia": "URI", "Image": "http://a/b.iso" }),
                true,
            ),
            (
                json!({ "Inserted": false, "ConnectedVia": "NotConnected", "Image": null }),
                false,
            ),
            // Supermicro
            (
                json!({ "Inserted": true, "ConnectedVia": "NotConnected", "Image": "\\b.iso" }),
                false,
            ),
            // sushy-tools
            (
                json!({ "Inserted": false, "ConnectedVia": "URI", "Image": "" }),
                false,
            ),
            // old ones
            (json!({ "Image": "http://a/b.iso" }), true),
            (json!({ "Image": "" }), false),
        ] {
            assert_eq!(slot(body.clone()).is_inserted, expected, "{body}");
        }
    }

    #[test]
    fn images_are_recognised_in_other_spellings() {
        let image = "http://10.0.0.9:8888/images/full.iso?token=secret"
            .parse()
            .unwrap();
        for (body, expected) in [
            (
                json!({ "Inserted": true, "Image": "http://10.0.0.9:8888/images/full.iso?token=secret" }),
                true,
            ),
            (
                json!({ "Inserted": true, "Image": "\\10.0.0.9\\images\\full.iso" }),
                true,
            ),
            (json!({ "Inserted": true, "ImageName": "full.iso" }), true),
            (
                json!({ "Inserted": true, "Image": "http://10.0.0.9:8888/images/other.iso" }),
                false,
            ),
            (
                json!({ "Inserted": false, "Image": "http://10.0.0.9:8888/images/full.iso" }),
                false,
            ),
            // Without its query, and as AMI and by name.
            (
                json!({ "Inserted": true, "Image": "http://image-service:8888/images/full.iso" }),
                true,
            ),
            (
                json!({ "Inserted": true, "Image": "//10.0.0.9/images/full.iso/full.iso" }),
                true,
            ),
            // The image before, of the same name.
            (
                json!({ "Inserted": true, "Image": "http://10.0.0.9:8888/old/full.iso", "ImageName": "full.iso" }),
                false,
            ),
        ] {
            assert_eq!(slot(body.clone()).holds(&image), expected, "{body}");
        }
        let read = slot(json!({ "Inserted": true, "Image": image.as_str() }));
        assert!(read.holds_exactly(&image));
        assert_eq!(read.content(), "http://10.0.0.9:8888/images/full.iso");
    }

    #[test]
    fn limits_of_drives_are_checked() {
        let action = |name: &str, values: Value| {
            slot(json!({ "Actions": { "#VirtualMedia.InsertMedia": {
                format!("{name}@Redfish.AllowableValues"): values } } }))
        };
        let image = "http://10.0.0.9/a.iso".parse().unwrap();
        let upload = action("TransferMethod", json!(["Upload"]));
        assert!(upload.check(&image, Some(UPLOAD_LIMIT)).is_ok());
        let error = upload.check(&image, Some(UPLOAD_LIMIT + 1)).unwrap_err();
        assert!(error.to_string().contains("minimal image"), "{error}");
        let both = action("TransferMethod", json!(["Stream", "Upload"]));
        assert!(both.check(&image, Some(u64::MAX)).is_ok());
        let protocols = action("TransferProtocolType", json!(["CIFS", "NFS"]));
        let error = protocols.check(&image, None).unwrap_err();
        assert!(
            error.to_string().contains("CIFS, NFS, not by HTTP"),
            "{error}"
        );
    }
}
