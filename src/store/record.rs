//! How a type is stored: one declaration of its columns makes the list `COLUMNS` and the functions
//! `read`, `find` and `insert`. If some columns change, it also makes `update`.

/// Declares the columns of a table, in the order in which a row is read.
///
/// - A column is `name: the value to write => how to read it;`. The first column is the scope.
/// - `written from` names the variable with the object to write, `read from` the variable with the
///   row that is read.
/// - Columns under `fixed` are written by `insert` alone, those under `changing` by `update` too.
///   Without `changing` there is no `update`.
/// - `update` raises the version. Its condition names the version and the status that the object
///   was read with, so it needs the columns `id`, `version` and `status`.
/// - The expression after `into` makes the object. In it, each column that was read is a variable
///   of its name.
#[macro_export]
macro_rules! stored {
    (
        $table:literal as $type:ident, written from $of:ident, read from $row:ident;
        fixed {
            $first:ident: $first_value:expr => $first_read:expr;
            $($fixed:ident: $fixed_value:expr => $fixed_read:expr;)*
        }
        $(changing from $status:ident {
            $($changing:ident: $changing_value:expr => $changing_read:expr;)*
        })?
        into $made:expr
    ) => {
        const COLUMNS: &str = concat!(
            stringify!($first)
            $(, ", ", stringify!($fixed))*
            $($(, ", ", stringify!($changing))*)?
        );

        static INSERT: std::sync::LazyLock<String> =
            std::sync::LazyLock::new(|| $crate::store::insert_sql($table, COLUMNS));

        /// Reads a row of these columns.
        pub fn read(mut $row: $crate::store::Row) -> Result<$type, $crate::kernel::StoreError> {
            let $row = &mut $row;
            let $first = $first_read;
            $(let $fixed = $fixed_read;)*
            $($(let $changing = $changing_read;)*)?
            Ok($made)
        }

        static FIND: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
            format!("SELECT {COLUMNS} FROM {} WHERE scope = ?1 AND id = ?2", $table)
        });

        /// Reads an object by its identifier.
        pub fn find(
            tx: &mut dyn $crate::store::Tx,
            scope: $crate::kernel::Scope,
            id: $crate::kernel::Id<$crate::kernel::id::kind::$type>,
        ) -> Result<Option<$type>, $crate::kernel::StoreError> {
            tx.row(&FIND, $crate::values![scope, id])?.map(read).transpose()
        }

        /// Inserts a new object.
        pub fn insert(
            tx: &mut dyn $crate::store::Tx,
            $of: &$type,
        ) -> Result<(), $crate::kernel::StoreError> {
            tx.execute_one(
                &INSERT,
                $crate::values![$first_value $(, $fixed_value)* $($(, $changing_value)*)?],
            )
        }

        $(
            static UPDATE: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
                $crate::store::record::update_sql($table, &[$(stringify!($changing)),*])
            });

            /// Writes a changed object. `from` is the status that it was read with. It is a
            /// conflict if the row has another version or status by now.
            pub fn update(
                tx: &mut dyn $crate::store::Tx,
                $of: &mut $type,
                from: $status,
            ) -> Result<(), $crate::kernel::StoreError> {
                tx.execute_one(
                    &UPDATE,
                    $crate::values![
                        $of.scope, $of.id, $of.version, from.as_str() $(, $changing_value)*
                    ],
                )?;
                $of.version += 1;
                Ok(())
            }
        )?
    };
}

/// The `UPDATE` of these columns. Its parameters are scope, identifier, version and status, then
/// the values of the columns.
pub fn update_sql(table: &str, columns: &[&str]) -> String {
    let assignments: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(index, column)| format!("{column} = ?{}", index + 5))
        .collect();
    format!(
        "UPDATE {table} SET version = version + 1, {} WHERE scope = ?1 AND id = ?2 AND version = \
         ?3 AND status = ?4",
        assignments.join(", ")
    )
}
