//! iDRAC's own way to the virtual CD: an import of configuration, whose task is followed and whose result is read.
//!
//! Source: sushy-oem-idrac, resources/manager/manager.py.

use reqwest::Method;
use serde_json::json;

use super::bmc::Bmc;
use super::error::BmcError;
use super::http::RedfishRequest;
use super::link::RedfishPath;
use super::timing::PollDeadline;

/// End of the name of the import, which has a number in front of it.
const IMPORT: &str = "OemManager.ImportSystemConfiguration";

impl Bmc {
    /// Boots the next time from the virtual CD. False on BMCs without the import.
    ///
    /// Errors: NotApplied – the attributes read otherwise; TaskFailed.
    pub(super) async fn boot_dell_virtual_cd(&mut self) -> Result<bool, BmcError> {
        let Some((manager, import)) = self.dell_import().await? else {
            return Ok(false);
        };
        // The job fails on insignificant white space.
        let configuration = format!(
            "<SystemConfiguration><Component FQDD=\"{}\">\
             <Attribute Name=\"ServerBoot.1#BootOnce\">Enabled</Attribute>\
             <Attribute Name=\"ServerBoot.1#FirstBootDevice\">VCD-DVD</Attribute>\
             </Component></SystemConfiguration>",
            manager.name()
        );
        let body = json!({ "ShareParameters": { "Target": "ALL" }, "ImportBuffer": configuration });
        let request = RedfishRequest::new(Method::POST, &import, Some(body));
        self.session.act(&request).await?;
        self.await_dell_boot(&manager).await?;
        Ok(true)
    }

    /// The manager with the import, and the import's path.
    async fn dell_import(&mut self) -> Result<Option<(RedfishPath, RedfishPath)>, BmcError> {
        for manager in self.managers.clone() {
            let document = self.session.get(&manager).await?;
            let actions = document.at("/Actions/Oem").as_object();
            let import = actions.and_then(|it| it.iter().find(|(name, _)| name.ends_with(IMPORT)));
            let target = import.and_then(|(_, action)| action["target"].as_str());
            if let Some(target) = target {
                // A name of its own path ends up in the configuration.
                let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
                if manager.name().chars().all(is_plain) {
                    return Ok(Some((manager, document.parse_link(target)?)));
                }
            }
        }
        Ok(None)
    }

    async fn await_dell_boot(&mut self, manager: &RedfishPath) -> Result<(), BmcError> {
        let path = manager.below("Attributes");
        let deadline = PollDeadline::new(self.session.timing.settle, self.session.timing.poll);
        loop {
            let read = match self.session.get(&path).await {
                // Newer firmware has them elsewhere; the task has ended well.
                Err(BmcError::NotFound { .. }) => return Ok(()),
                read => read?,
            };
            let device = read.text("/Attributes/ServerBoot.1.FirstBootDevice");
            let once = read.text("/Attributes/ServerBoot.1.BootOnce");
            if (device, once) == (Some("VCD-DVD"), Some("Enabled")) || device.is_none() {
                return Ok(());
            }
            if !deadline.wait(None).await {
                return Err(BmcError::NotApplied {
                    doing: "set the boot source",
                    expected: "VCD-DVD, once".to_owned(),
                    seen: device.unwrap_or("nothing").chars().take(40).collect(),
                    cause: String::new(),
                });
            }
        }
    }
}
