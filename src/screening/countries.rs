//! Country names as sanctions lists write them, turned into ISO 3166-1 alpha-2 codes.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::text::normalise;
use crate::kernel::countries::is_country;

/// Two letters in the form of an ISO 3166-1 alpha-2 code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct CountryCode([u8; 2]);

impl CountryCode {
    /// Two ASCII letters, upper case.
    pub fn parse(text: &str) -> Option<CountryCode> {
        match text.as_bytes() {
            [first @ b'A'..=b'Z', second @ b'A'..=b'Z'] => Some(CountryCode([*first, *second])),
            _ => None,
        }
    }
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Code and names, the names separated by `/`. Names are compared normalised.
const COUNTRIES: &str = "AF Afghanistan;AL Albania;DZ Algeria;AD Andorra;AO Angola;AG Antigua and \
 Barbuda;AR Argentina;AM Armenia;\
AU Australia;AT Austria;AZ Azerbaijan;BS Bahamas/The Bahamas/Bahamas, The;BH Bahrain;BD \
Bangladesh;BB Barbados;BY Belarus;BE Belgium;BZ Belize;\
BJ Benin;BM Bermuda;BT Bhutan;BO Bolivia/Bolivia (Plurinational State of);BA Bosnia and \
Herzegovina/Bosnia;BW Botswana;BR Brazil;\
BN Brunei/Brunei Darussalam;BG Bulgaria;BF Burkina Faso;BI Burundi;KH Cambodia;CM Cameroon;CA \
Canada;CV Cape Verde/Cabo Verde;KY Cayman Islands;\
CF Central African Republic;TD Chad;CL Chile;CN China/People's Republic of China/PRC;CO \
Colombia;KM Comoros;\
CD Democratic Republic of the Congo/Congo, Democratic Republic of the/DRC/Democratic Republic of \
Congo;\
CG Congo/Republic of the Congo/Congo, Republic of the;CR Costa Rica;CI Cote d'Ivoire/Ivory \
Coast;HR Croatia;CU Cuba;CW Curacao;CY Cyprus;\
CZ Czech Republic/Czechia;DK Denmark;DJ Djibouti;DM Dominica;DO Dominican Republic;EC Ecuador;EG \
Egypt;SV El Salvador;GQ Equatorial Guinea;ER Eritrea;\
EE Estonia;SZ Eswatini/Swaziland;ET Ethiopia;FJ Fiji;FI Finland;FR France;GA Gabon;GM Gambia/The \
Gambia/Gambia, The;GE Georgia;DE Germany;GH Ghana;\
GI Gibraltar;GR Greece;GD Grenada;GT Guatemala;GN Guinea;GW Guinea-Bissau;GY Guyana;HT Haiti;HN \
Honduras;HK Hong Kong;HU Hungary;IS Iceland;\
IN India/Republic of India;ID Indonesia;IR Iran/Iran (Islamic Republic of)/Islamic Republic of \
Iran;IQ Iraq;IE Ireland;IM Isle of Man/Man, Isle of;\
IL Israel;IT Italy;JM Jamaica;JP Japan;JE Jersey;JO Jordan;KZ Kazakhstan;KE Kenya;\
KP North Korea/Korea, North/Democratic People's Republic of Korea/DPRK;KR South Korea/Korea, \
South/Republic of Korea/Korea;KW Kuwait;KG Kyrgyzstan;\
LA Laos/Lao People's Democratic Republic;LV Latvia;LB Lebanon;LS Lesotho;LR Liberia;LY \
Libya/Libyan Arab Jamahiriya;LI Liechtenstein;LT Lithuania;\
LU Luxembourg;MO Macau/Macao;MK North Macedonia/Macedonia/North Macedonia, The Republic of;MG \
Madagascar;MW Malawi;MY Malaysia;MV Maldives;ML Mali;\
MT Malta;MH Marshall Islands;MR Mauritania;MU Mauritius;MX Mexico;MD Moldova/Republic of \
Moldova;MC Monaco;MN Mongolia;ME Montenegro;MA Morocco;\
MZ Mozambique;MM Myanmar/Burma;NA Namibia;NR Nauru;NP Nepal;NL Netherlands/The Netherlands;NZ New \
Zealand;NI Nicaragua;NE Niger;NG Nigeria;NO Norway;\
OM Oman;PK Pakistan;PW Palau;PS Palestine/State of Palestine/Palestinian/West Bank/Region: \
Gaza/Gaza;PA Panama;PG Papua New Guinea;PY Paraguay;PE Peru;\
PH Philippines/The Philippines;PL Poland;PT Portugal;QA Qatar;RO Romania;RU Russia/Russian \
Federation;RW Rwanda;KN Saint Kitts and Nevis;LC Saint Lucia;\
VC Saint Vincent and the Grenadines;WS Samoa;SM San Marino;ST Sao Tome and Principe;SA Saudi \
Arabia;SN Senegal;RS Serbia/Serbia and Montenegro;\
SC Seychelles;SL Sierra Leone;SG Singapore;SK Slovakia/Slovak Republic;SI Slovenia;SB Solomon \
Islands;SO Somalia;ZA South Africa;\
SS South Sudan/Republic of South Sudan;ES Spain;LK Sri Lanka;SD Sudan/The Sudan/Sudan (the);SR \
Suriname;SE Sweden;CH Switzerland;\
SY Syria/Syrian Arab Republic;TW Taiwan;TJ Tajikistan;TZ Tanzania/United Republic of Tanzania;TH \
Thailand;TL Timor-Leste/East Timor;TG Togo;TO Tonga;\
TT Trinidad and Tobago;TN Tunisia;TR Turkey/Turkiye;TM Turkmenistan;TV Tuvalu;UG Uganda;UA \
Ukraine;AE United Arab Emirates/UAE;\
GB United Kingdom/United Kingdom of Great Britain and Northern Ireland/UK/Great \
Britain/England;US United States/United States of America/USA;UY Uruguay;\
UZ Uzbekistan;VU Vanuatu;VA Vatican/Holy See;VE Venezuela/Venezuela (Bolivarian Republic of);VN \
Vietnam/Viet Nam;VG Virgin Islands, British/British Virgin Islands;\
EH Western Sahara;YE Yemen;ZM Zambia;ZW Zimbabwe;XK Kosovo";

static CODES: LazyLock<HashMap<String, CountryCode>> = LazyLock::new(|| {
    let lines = COUNTRIES
        .split(';')
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(code, names)| Some((CountryCode::parse(code)?, names)));
    lines
        .flat_map(|(code, names)| names.split('/').map(move |name| (normalise(name), code)))
        .collect()
});

/// The code of a country that a list names; `None` if the name is unknown, which is no evidence
/// either way.
pub fn find(name: &str) -> Option<CountryCode> {
    // Names come first: "UK" is a name, and no ISO code.
    CODES.get(&normalise(name)).copied().or_else(|| {
        // ISO 3166 does not assign XK, the code of Kosovo here.
        let is_code = |code: &CountryCode| {
            is_country(code.as_str()) || CODES.values().any(|known| known == code)
        };
        CountryCode::parse(name.trim()).filter(is_code)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_lists_are_known() {
        for (name, code) in [
            ("India", "IN"),
            ("Russian Federation", "RU"),
            ("Democratic Republic of the Congo", "CD"),
            ("Iran (Islamic Republic of)", "IR"),
            ("Türkiye", "TR"),
            ("Côte d'Ivoire", "CI"),
            ("Korea, North", "KP"),
            ("AE", "AE"),
            ("UK", "GB"),
            ("AW", "AW"),
            ("XK", "XK"),
        ] {
            assert_eq!(find(name).as_ref().map(CountryCode::as_str), Some(code), "{name}");
        }
        assert!(find("Atlantis").is_none() && find("").is_none() && find("ind").is_none());
        assert!(find("XX").is_none() && find("ZZ").is_none());
        assert!(CODES.len() > 240);
    }
}
