//! Drills over HTTP.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Drill, DrillCheck, DrillGrade, DrillStatus, begin, rows};
use crate::http::form::Nothing;
use crate::http::route::{self, Context, Route};
use crate::kernel::{Code, Id, OperationError, Refusal, id::kind};
use crate::webhooks::Endpoint;
use crate::webhooks::api::locate;

crate::string_enum!(WebhookDrillWord { WebhookDrill "webhook_drill" });

/// The newest drill of a webhook endpoint.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WebhookDrill")]
pub struct DrillView {
    pub object: WebhookDrillWord,
    pub webhook_endpoint_id: Id<kind::WebhookEndpoint>,
    pub status: DrillStatus,
    /// `passed` if every check passed; null while the drill runs.
    pub grade: Option<DrillGrade>,
    /// What was sent, and how it was answered.
    pub checks: Vec<DrillCheck>,
    pub created: i64,
    pub completed_at: Option<i64>,
    pub livemode: bool,
}

fn view(drill: Drill) -> DrillView {
    DrillView {
        object: WebhookDrillWord::WebhookDrill,
        webhook_endpoint_id: drill.endpoint_id,
        status: drill.status,
        grade: drill.grade(),
        checks: drill.checks,
        created: drill.created,
        completed_at: drill.completed_at,
        livemode: drill.scope.livemode(),
    }
}

pub fn routes() -> Vec<Route> {
    vec![
        route::post(
            "/v1/webhook_endpoints/{id}/drill",
            "Try a receiver with duplicates, forgeries and slow deliveries",
            locate,
            drill,
        )
        .codes(&[Code::TestmodeActionOnly, Code::TestHelperNotApplicable]),
        route::get("/v1/webhook_endpoints/{id}/drill", "Get the report of the newest drill", show),
    ]
}

fn drill(
    context: &mut Context<'_>,
    endpoint: Endpoint,
    _: Nothing,
) -> Result<DrillView, OperationError> {
    Ok(view(begin(context.tx, context.now, &endpoint)?))
}

fn show(context: &mut Context<'_>) -> Result<DrillView, OperationError> {
    let endpoint = locate(context)?;
    let found = rows::find(context.tx, endpoint.scope, endpoint.id)?;
    Ok(view(found.ok_or_else(Refusal::not_found)?))
}
