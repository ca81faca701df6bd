//! The weight of a word of a name: how well it identifies a person.
//!
//! A common word such as Mohammed, Khan or Kumar identifies nobody. The share of people who bear a
//! word is estimated from the lists themselves, where each entry counts once, and from the table
//! below, which represents the people who are screened. The weight is the natural logarithm of one
//! over the share. So the weights of a name's words can be added where their shares would be
//! multiplied.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::sounds::spelling_key;

/// The table of common words counts as much as this many entries of the lists.
const TABLE_ENTRIES: f64 = 5_000.0;
/// The share of a word that the table does not have.
const SHARE_UNKNOWN: f64 = 0.000_1;
/// Weight of articles, particles and forms of address.
const WEIGHT_OF_PARTICLE: f64 = 0.3;
/// Weight of single letters, and the least weight of all words but articles, particles and forms of
/// address.
const WEIGHT_OF_LETTER: f64 = 0.7;

/// Words that link names. People leave them out, join them to a neighbour or spell them
/// differently, so they weigh little.
const PARTICLES: &[&str] = &[
    "al", "el", "ul", "ur", "us", "ud", "as", "ar", "at", "ad", "an", "bin", "ben", "ibn", "bint",
    "binti", "wal", "de", "da", "do", "dos", "del", "der", "van", "von", "la", "le", "di", "oglu",
];

/// Forms of address, and titles of learning and piety. One reading leaves them out in front of a
/// name (`prepare.rs`); where they stay, they weigh [`WEIGHT_OF_PARTICLE`]. Those that are also in
/// `text.rs` are always left out in front. `prepare.rs` has those that follow a name.
pub const HONORIFICS: &[&str] = &[
    "mr",
    "mrs",
    "ms",
    "miss",
    "mx",
    "dr",
    "prof",
    "shri",
    "shree",
    "sri",
    "shrimati",
    "smt",
    "kum",
    "selvi",
    "thiru",
    "tmt",
    "capt",
    "col",
    "maj",
    "gen",
    "lt",
    "er",
    "adv",
    "late",
    "master",
    "sheikh",
    "shaikh",
    "sheik",
    "shaykh",
    "maulana",
    "moulana",
    "mawlana",
    "mowlana",
    "maulvi",
    "moulvi",
    "maulavi",
    "mawlawi",
    "mullah",
    "mulla",
    "mollah",
    "haji",
    "hajji",
    "hadji",
    "hajj",
    "alhaji",
    "alhaj",
    "brig",
    "cdr",
    "hafiz",
    "hafeez",
    "qari",
    "kari",
    "mufti",
    "imam",
    "ustad",
    "ustaz",
    "ustadh",
    "ayatollah",
    "allama",
    "sardar",
    "hazrat",
    "janab",
    "jenab",
    "messrs",
];

/// Words, with how many of 10 000 people bear each of them.
const SHARES: &[(u16, &str)] = &[
    (600, "mohammed kumar singh devi"),
    (150, "khan ali ahmed abdul hussain kaur begum bibi lal ram sharma patel das shah hassan"),
    (
        60,
        "sheikh syed ansari kumari prasad gupta verma yadav reddy rao nair pillai iyer roy sen \
         ghosh jain agarwal mishra pandey mehta joshi desai raj nath chandra thomas john joseph \
         george mathew fernandes menon naidu chaudhary thakur tiwari khatun bano banu alam \
         haq islam \
         rahman malik mirza baig pathan qureshi siddiqui hashmi akhtar iqbal raza abdullah ibrahim \
         ismail yusuf khalid saeed umar usman aziz hamid rashid karim rahim salim amin din mahmud",
    ),
    (
        25,
        "farooq imran irfan asif aslam akbar akram anwar ashraf arif adil azhar aftab bashir bilal \
         faisal farhan feroz ghulam habib haidar hanif haroon hamza idris ilyas imtiaz \
         jabbar jafar \
         jalil jamal jamil javed junaid kamal kamran kashif khalil latif luqman majid \
         mansoor maqbool \
         masood mujahid mumtaz mushtaq mustafa nabi nadeem naeem naim nasim nasir naved \
         nawaz nazir \
         noor parvez qadir qasim rafiq rais rauf riaz riyaz rizwan sabir sadiq sajid salman sami \
         sarfraz sattar shabbir shafi shafiq shahid shakil shamim sharif shaukat siraj sohail \
         suleiman sultan tahir talib tariq tanveer umair usmani wahid waseem wasim yakub \
         yasin yasir \
         zahid zahir zakir zaki zaman zia zubair yunus yahya musa daud dawood isa harun \
         jabir abbas \
         hadi mahdi reza asad osama omar fahad walid munir mubarak mohsin moin muzaffar \
         nizam obaid \
         aamir amir emran ehsan faiz fayaz gulzar hafiz inayat ishaq jahangir kazi qazi \
         lateef mazhar \
         meraj mehraj nabeel owais qamar rehan saad saif sarwar shams shan shoaib tauseef uddin \
         waqar zafar zain fatima ayesha khadija zainab amina asma farah farida farzana hafsa hina \
         jamila laila mariam nargis nasreen nazia noorjahan parveen rabia razia rehana \
         rukhsana sadia \
         saima sakina salma sana shabana shabnam shahnaz shazia sultana tabassum tahira yasmin \
         zeenat zoya zahra zehra bukhari naqvi rizvi zaidi jafri abidi kazmi gilani chishti faruqi \
         usman farooqui momin mansuri memon bohra lone dar bhat mir wani ganie rather butt lodhi \
         rajput warsi quadri qadri sayeed hakim nabi mian miya mondal mollah molla sarkar biswas \
         laskar barbhuiya talukdar kazim kadir kader kutty koya haji musliyar thangal",
    ),
    (
        40,
        "amit anil arun ashok rajesh rakesh ramesh suresh sunil sanjay vijay ajay manoj mukesh \
         dinesh mahesh santosh vinod rahul ravi deepak sandeep pradeep vikas vivek krishna \
         gopal mohan \
         prakash anand sunita anita geeta gita sita radha lakshmi priya pooja neha kavita \
         rekha meena \
         usha asha shanti kamala kiran suman jyoti nisha rani bai kapoor malhotra chopra \
         saxena dubey \
         trivedi dwivedi chaturvedi shukla bhatt hegde gowda shetty kamath pai naik patil jadhav \
         shinde pawar more gaikwad kulkarni deshpande deshmukh bose mukherjee banerjee \
         chatterjee dutta \
         mitra paul dey saha mandal sahu behera nayak mohanty panda rathore chauhan solanki parmar \
         gill sandhu sidhu dhillon grewal bedi arora khanna bhatia sethi ahuja bansal goyal mittal \
         iyengar krishnan raman subramanian venkatesh srinivas murthy raju babu varghese \
         dsouza pereira",
    ),
];

static TABLE: LazyLock<HashMap<String, f64>> = LazyLock::new(|| {
    let mut table = HashMap::new();
    for (share, words) in SHARES {
        for word in words.split_whitespace() {
            let share = f64::from(*share) / 10_000.0;
            let known: &mut f64 = table.entry(spelling_key(word)).or_insert(share);
            *known = known.max(share);
        }
    }
    table
});

/// Weights of words, made from the lists and the table.
#[derive(Default)]
pub struct WordWeights {
    entries_count: f64,
    /// How many entries have a word, by the word's key.
    entries_of: HashMap<String, f64>,
}

impl WordWeights {
    /// `entries` are the keys of the words of each entry's names.
    pub fn of(entries: impl Iterator<Item = HashSet<String>>) -> WordWeights {
        let mut weights = WordWeights::default();
        for keys in entries {
            weights.entries_count += 1.0;
            for key in keys {
                *weights.entries_of.entry(key).or_default() += 1.0;
            }
        }
        weights
    }

    /// The weight of a word: 2 to 3 for Mohammed, 9 or more for a word that nobody is known to
    /// bear. `key` is the word's [`spelling_key`].
    pub fn weight(&self, word: &str, key: &str) -> f64 {
        if word.chars().nth(1).is_none() {
            return WEIGHT_OF_LETTER;
        }
        if PARTICLES.contains(&word) || HONORIFICS.contains(&word) {
            return WEIGHT_OF_PARTICLE;
        }
        let share = TABLE.get(key).copied().unwrap_or(SHARE_UNKNOWN);
        let bearers = self.entries_of.get(key).copied().unwrap_or_default() + share * TABLE_ENTRIES;
        ((self.entries_count + TABLE_ENTRIES) / bearers).ln().max(WEIGHT_OF_LETTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_many_people_bear_weigh_little() {
        let weights = WordWeights::default();
        let weight = |word: &str| weights.weight(word, &spelling_key(word));
        assert!(weight("al") < weight("muhammad") && weight("sheikh") < weight("mohd"));
        assert!(weight("mohammed") < weight("khan") && weight("khan") < weight("imran"));
        assert!(weight("imran") < weight("zubin") && weight("kumar") < weight("rajesh"));
        assert_eq!(weight("mohammed"), weight("muhammad"));
        let keys = |word: &str| HashSet::from([spelling_key(word)]);
        let lists = WordWeights::of((0..500).map(|_| keys("zubin")));
        assert!(lists.weight("zubin", &spelling_key("zubin")) < weight("imran"));
    }
}
