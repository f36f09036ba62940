//! Methods of `api.Registry`. Messages of errors and the code UNKNOWN are the protocol's: clients distinguish errors by
//! nothing else. Source: operator-registry, `pkg/server/server.go`, `pkg/cache/cache.go`.

use std::sync::Arc;

use catalog::api::{
    GetAllProvidersRequest, GetAllReplacementsRequest, GetBundleInChannelRequest, GetBundleRequest,
    GetDefaultProviderRequest, GetLatestProvidersRequest, GetPackageRequest, GetReplacementRequest,
};
use catalog::cache::{CachedChannel, CachedPackage, CatalogCache, Slices};
use tonic::Status;

use super::quote::quote;
use super::wire::GrpcCall;

type RegistryReply = Result<Slices, Status>;

pub(super) fn get_package(
    cache: &Arc<CatalogCache>,
    call: &GrpcCall<GetPackageRequest>,
) -> RegistryReply {
    Ok(package(cache, &call.message.name)?.reply())
}

pub(super) fn get_bundle(
    cache: &Arc<CatalogCache>,
    call: &GrpcCall<GetBundleRequest>,
) -> RegistryReply {
    let GetBundleRequest {
        pkg_name,
        channel_name,
        csv_name,
    } = &call.message;
    let channel = channel(package(cache, pkg_name)?, pkg_name, channel_name)?;
    let entry = channel.entry(csv_name).ok_or_else(|| {
        let [package, channel, bundle] = [pkg_name, channel_name, csv_name].map(|name| quote(name));
        Status::unknown(format!(
            "package {package}, channel {channel}, bundle {bundle} not found"
        ))
    })?;
    Ok(entry.reply())
}

pub(super) fn get_bundle_for_channel(
    cache: &Arc<CatalogCache>,
    call: &GrpcCall<GetBundleInChannelRequest>,
) -> RegistryReply {
    let GetBundleInChannelRequest {
        pkg_name,
        channel_name,
    } = &call.message;
    let channel = channel(package(cache, pkg_name)?, pkg_name, channel_name)?;
    let head = channel.head();
    let head = head.ok_or_else(|| Status::data_loss("the cache is damaged"))?;
    Ok(head.reply())
}

pub(super) fn get_channel_entries_that_replace(
    cache: &Arc<CatalogCache>,
    call: &GrpcCall<GetAllReplacementsRequest>,
) -> RegistryReply {
    let name = &call.message.csv_name;
    let text = || format!("no channel entries found that replace {name}");
    cache.replacing(name).ok_or_else(|| Status::unknown(text()))
}

pub(super) fn get_bundle_that_replaces(
    cache: &Arc<CatalogCache>,
    call: &GrpcCall<GetReplacementRequest>,
) -> RegistryReply {
    let GetReplacementRequest {
        csv_name,
        pkg_name,
        channel_name,
    } = &call.message;
    // Source: opm quotes the name in all methods but this one.
    let package = cache.package(pkg_name);
    let package =
        package.ok_or_else(|| Status::unknown(format!("package {pkg_name} not found")))?;
    let channel = channel(package, pkg_name, channel_name)?;
    let entry = channel.replacing(csv_name).ok_or_else(|| {
        let [package, channel] = [pkg_name, channel_name].map(|name| quote(name));
        Status::unknown(format!(
            "no entry found for package {package}, channel {channel}"
        ))
    })?;
    Ok(entry.reply())
}

pub(super) fn get_channel_entries_that_provide(
    cache: &Arc<CatalogCache>,
    call: &GrpcCall<GetAllProvidersRequest>,
) -> RegistryReply {
    let GetAllProvidersRequest {
        group,
        version,
        kind,
        ..
    } = &call.message;
    let found = cache.providing(group, version, kind);
    found.ok_or_else(|| nothing_provides(group, version, kind))
}

pub(super) fn get_latest_channel_entries_that_provide(
    cache: &Arc<CatalogCache>,
    call: &GrpcCall<GetLatestProvidersRequest>,
) -> RegistryReply {
    let GetLatestProvidersRequest {
        group,
        version,
        kind,
        ..
    } = &call.message;
    let found = cache.latest_providing(group, version, kind);
    found.ok_or_else(|| nothing_provides(group, version, kind))
}

pub(super) fn get_default_bundle_that_provides(
    cache: &Arc<CatalogCache>,
    call: &GrpcCall<GetDefaultProviderRequest>,
) -> RegistryReply {
    let GetDefaultProviderRequest {
        group,
        version,
        kind,
        ..
    } = &call.message;
    if cache.latest_providing(group, version, kind).is_none() {
        return Err(nothing_provides(group, version, kind));
    }
    let entry = cache.default_providing(group, version, kind);
    let entry = entry.ok_or_else(|| {
        let api = api(group, version, kind);
        Status::unknown(format!("no entry found that provides {api}"))
    })?;
    Ok(entry.reply())
}

fn package<'a>(cache: &'a Arc<CatalogCache>, name: &str) -> Result<CachedPackage<'a>, Status> {
    let text = || format!("package {} not found", quote(name));
    cache.package(name).ok_or_else(|| Status::unknown(text()))
}

fn channel<'a>(
    package: CachedPackage<'a>,
    of: &str,
    name: &str,
) -> Result<CachedChannel<'a>, Status> {
    let text = || format!("package {}, channel {} not found", quote(of), quote(name));
    package.channel(name).ok_or_else(|| Status::unknown(text()))
}

fn nothing_provides(group: &str, version: &str, kind: &str) -> Status {
    let api = api(group, version, kind);
    Status::unknown(format!("no channel entries found that provide {api}"))
}

fn api(group: &str, version: &str, kind: &str) -> String {
    let [group, version, kind] = [group, version, kind].map(quote);
    format!("group:{group} version:{version} kind:{kind}")
}
