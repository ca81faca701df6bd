#![doc = include_str!("../README.md")]

// Its code and its lines are as long as the document's descriptions.
#[rustfmt::skip]
mod types;

pub use types::*;

/// A decimal number as text, such as `1000.00`. Never make a floating-point number of it.
pub type Decimal = String;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::types::round_trip;
    use crate::{Beneficiary, BeneficiaryStatus, CreateQuoteLock, QuoteLock, UpdateBeneficiary};

    /// Takes out what is null: a field that may be left out is left out.
    fn without_nulls(value: Value) -> Value {
        match value {
            Value::Object(members) => members
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name, without_nulls(value)))
                .collect(),
            Value::Array(items) => items.into_iter().map(without_nulls).collect(),
            other => other,
        }
    }

    /// Each body in the API's document that has an example: the name of its type, and the example.
    fn examples() -> Vec<(String, Value)> {
        let path = std::env::var("HUNDI_OPENAPI").expect("HUNDI_OPENAPI names the document");
        let document: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let operations = document["paths"].as_object().unwrap().values();
        let bodies = operations.filter_map(Value::as_object).flat_map(|path| path.values());
        let bodies = bodies.flat_map(|operation| {
            let answers =
                operation["responses"].as_object().into_iter().flat_map(|all| all.values());
            answers.chain(operation.get("requestBody")).collect::<Vec<_>>()
        });
        let contents = bodies.map(|body| &body["content"]["application/json"]);
        let named = contents.filter_map(|content| {
            let name = content["schema"]["$ref"].as_str()?.rsplit('/').next()?;
            Some((name.to_owned(), content.get("example")?.clone()))
        });
        named.collect()
    }

    #[test]
    fn the_types_keep_every_field_of_every_example() {
        let examples = examples();
        assert!(examples.len() > 75, "only {} examples", examples.len());
        for (name, example) in examples {
            let again = round_trip(&name, &example.to_string());
            let again = again.unwrap_or_else(|error| panic!("{name}: {error}: {example}"));
            assert_eq!(without_nulls(again), without_nulls(example), "{name}");
        }
    }

    #[test]
    fn an_example_with_a_field_of_another_type_is_refused() {
        let (name, mut example) =
            examples().into_iter().find(|(name, _)| name == "Transfer").unwrap();
        assert!(round_trip(&name, &example.to_string()).is_ok());
        example["created"] = json!("yesterday");
        assert!(round_trip(&name, &example.to_string()).is_err());
    }

    #[test]
    fn words_and_fields_that_are_newer_are_read() {
        let (_, mut example) =
            examples().into_iter().find(|(name, _)| name == "Beneficiary").unwrap();
        example["status"] = json!("dreaming");
        example["colour"] = json!("blue");
        let read: Beneficiary = serde_json::from_value(example).unwrap();
        assert_eq!(read.status, BeneficiaryStatus::Unknown("dreaming".to_owned()));
        assert_eq!(json!(read)["status"], "dreaming");
    }

    #[test]
    fn a_running_service_takes_and_answers_the_types() {
        let get = |name| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
        let body = CreateQuoteLock {
            sell_currency: "USD".into(),
            buy_currency: "INR".into(),
            amount: Some("1000.00".into()),
            ..Default::default()
        };
        let lock: QuoteLock = ureq::post(format!("{}/v1/quote_locks", get("HUNDI_BASE_URL")))
            .header("Authorization", format!("Bearer {}", get("HUNDI_API_KEY")))
            .header("Idempotency-Key", "a-test-of-the-rust-types")
            .send_json(body)
            .and_then(|mut answer| answer.body_mut().read_json())
            .unwrap();
        assert_eq!((lock.sell_amount.as_str(), lock.object.as_str()), ("1000.00", "quote_lock"));
    }

    #[test]
    fn an_update_leaves_alone_or_removes() {
        let update = UpdateBeneficiary { email: Some(None), ..Default::default() };
        assert_eq!(json!(update), json!({ "email": null }));
    }
}
