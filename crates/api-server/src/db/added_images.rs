//! Statement about the images that administrators added to earlier servers, which no server serves any more.

use sqlx::PgConnection;

use super::Error;

/// Version and architecture of each release image and OS image.
pub(crate) async fn list(connection: &mut PgConnection) -> Result<Vec<String>, Error> {
    let names = sqlx::query_scalar!(
        r#"select version || ' ' || cpu_architecture as "name!" from release_images
        union
        select openshift_version || ' ' || cpu_architecture from os_images
        order by 1"#
    );
    Ok(names.fetch_all(connection).await?)
}
