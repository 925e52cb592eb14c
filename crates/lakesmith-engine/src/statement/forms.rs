//! Other forms of what the parser knows in one form only.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// What stands between two queries.
const SET_WORDS: [&str; 6] = ["union", "except", "intersect", "minus", "all", "distinct"];

/// Writes `TABLE t` as `SELECT * FROM t`, `t FOR [SYSTEM_]VERSION | [SYSTEM_]TIME AS OF` without FOR and SYSTEM, and a
/// version that is a text as a number; makes the `exists` of arrays a name like others.
///
/// # Source
/// Spark `SqlBaseParser.g4`, `queryPrimary`, `temporalClause`.
pub(super) fn settle_forms(tokens: &mut Vec<TokenWithSpan>) {
    let first = |expected| words(tokens, 0).next().is_some_and(|word| is(word, expected));
    let (insert, create) = (first("insert"), first("create"));
    let mut settled: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    // Where the rows of an INSERT may begin: outside of all parentheses, before any other query.
    let (mut depth, mut queried) = (0_usize, false);
    let mut before: Option<Token> = None;
    let mut renamed = None;
    for at in 0..tokens.len() {
        let mut token = tokens[at].clone();
        if matches!(token.token, Token::Whitespace(_)) {
            settled.push(token);
            continue;
        }
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            word if is(word, "for") => {
                let mut next = words(tokens, at + 1);
                let version = next.next().and_then(version_word);
                if let (Some(version), Some(_), Some(_)) =
                    (version, next.next().filter(|w| is(w, "as")), next.next().filter(|w| is(w, "of")))
                {
                    renamed = Some(version);
                    continue;
                }
            }
            word if is(word, "table") => {
                let outside = depth == 0 && !queried;
                let begins = match &before {
                    None | Some(Token::LParen) => true,
                    Some(Token::RParen) => outside,
                    Some(word) if ["into", "overwrite"].iter().any(|w| is(word, w)) => false,
                    Some(word) if SET_WORDS.iter().any(|w| is(word, w)) => true,
                    Some(word) => outside && (insert || create && is(word, "as")),
                };
                if begins && is_whole_query(tokens, at + 1) {
                    for part in [Token::make_keyword("select"), Token::Mul, Token::make_keyword("from")] {
                        settled.push(TokenWithSpan { token: part, span: token.span });
                    }
                    before = Some(token.token);
                    continue;
                }
            }
            word if is(word, "exists") && takes_no_query(tokens, at + 1) => {
                if let Token::Word(word) = &mut token.token {
                    word.keyword = Keyword::NoKeyword;
                }
            }
            word => {
                queried |= depth == 0 && ["select", "values", "from", "where"].iter().any(|w| is(word, w));
                if let Some(word) = renamed.take_if(|_| version_word(word).is_some()) {
                    token.token = Token::make_keyword(word);
                }
            }
        }
        before = Some(token.token.clone());
        settled.push(token);
    }
    settle_versions(&mut settled);
    *tokens = settled;
}

/// The parser takes numbers for versions only, where a text may stand, too: what it says is looked at later.
fn settle_versions(tokens: &mut [TokenWithSpan]) {
    let significant: Vec<usize> =
        (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    for four in significant.windows(4) {
        let expected = ["version", "as", "of"];
        if four.iter().zip(expected).all(|(at, word)| is(&tokens[*at].token, word))
            && let Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) = &tokens[four[3]].token
        {
            tokens[four[3]].token = Token::Number(text.clone(), false);
        }
    }
}

/// True if values in parentheses begin at `from`, and no query.
fn takes_no_query(tokens: &[TokenWithSpan], from: usize) -> bool {
    let mut next = words(tokens, from);
    let opens = next.next().is_some_and(|token| *token == Token::LParen);
    let queries = ["select", "with", "values", "from", "table"];
    opens && next.next().is_some_and(|token| *token != Token::LParen && !queries.iter().any(|word| is(token, word)))
}

/// True if a name and nothing else of a query's own begins at `from`.
fn is_whole_query(tokens: &[TokenWithSpan], from: usize) -> bool {
    let mut next = words(tokens, from).peekable();
    loop {
        if !matches!(next.next(), Some(Token::Word(_))) {
            return false;
        }
        if next.next_if(|token| **token == Token::Period).is_none() {
            break;
        }
    }
    match next.next() {
        None | Some(Token::RParen | Token::SemiColon | Token::EOF) => true,
        Some(word) => [&SET_WORDS[..], &["order", "sort", "limit", "offset"]].concat().iter().any(|w| is(word, w)),
    }
}

fn words(tokens: &[TokenWithSpan], from: usize) -> impl Iterator<Item = &Token> {
    tokens[from..].iter().map(|t| &t.token).filter(|t| !matches!(t, Token::Whitespace(_)))
}

fn is(token: &Token, expected: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected))
}

fn version_word(token: &Token) -> Option<&'static str> {
    [("version", "version"), ("system_version", "version"), ("timestamp", "timestamp"), ("system_time", "timestamp")]
        .into_iter()
        .find_map(|(word, means)| is(token, word).then_some(means))
}

/// Takes the tokens of WITH … that stand before INSERT; `None` if there are none.
pub(super) fn take_queries_before(tokens: &mut Vec<TokenWithSpan>) -> Option<Vec<TokenWithSpan>> {
    let mut significant = tokens.iter().enumerate().filter(|(_, t)| !matches!(t.token, Token::Whitespace(_)));
    if !is_keyword(&significant.next()?.1.token, Keyword::WITH) {
        return None;
    }
    let mut depth = 0_usize;
    for (at, token) in significant {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            other if depth == 0 && is_keyword(other, Keyword::SELECT) => return None,
            other if depth == 0 && is_keyword(other, Keyword::INSERT) => return Some(tokens.drain(..at).collect()),
            _ => {}
        }
    }
    None
}

fn is_keyword(token: &Token, keyword: Keyword) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.keyword == keyword)
}

#[cfg(test)]
mod tests {
    use crate::statement::parse::{Kind, parse};

    #[test]
    fn other_forms_are_the_queries_that_they_stand_for() {
        for (text, expected) in [
            ("TABLE t", "SELECT * FROM t"),
            ("TABLE delta.`/A b`", "SELECT * FROM delta.`/A b`"),
            ("TABLE a UNION ALL (TABLE b)", "SELECT * FROM a UNION ALL (SELECT * FROM b)"),
            ("WITH c AS (TABLE d.t) TABLE c", "WITH c AS (SELECT * FROM d.t) SELECT * FROM c"),
            ("SELECT * FROM (TABLE a)", "SELECT * FROM (SELECT * FROM a)"),
            ("SELECT table FROM t", "SELECT table FROM t"),
            ("SELECT a FROM t WHERE (table IS NULL)", "SELECT a FROM t WHERE (table IS NULL)"),
            ("SELECT * FROM (SELECT 1) table", "SELECT * FROM (SELECT 1) table"),
            ("SELECT * FROM t FOR SYSTEM_VERSION AS OF 3", "SELECT * FROM t VERSION AS OF 3"),
            ("SELECT * FROM t VERSION AS OF 'b1'", "SELECT * FROM t VERSION AS OF b1"),
            ("SELECT 'version' AS of, 'x'", "SELECT 'version' AS of, 'x'"),
            ("SELECT * FROM t FOR TIMESTAMP AS OF '2026-01-01'", "SELECT * FROM t TIMESTAMP AS OF '2026-01-01'"),
        ] {
            let Kind::Query(query) = parse(text).unwrap().kind else { panic!("{text}") };
            assert_eq!(query.to_string(), expected);
        }
    }

    #[test]
    fn the_table_of_an_insert_stays_one() {
        for text in
            ["INSERT INTO TABLE t TABLE u", "INSERT OVERWRITE TABLE t (a) TABLE u", "INSERT INTO t BY NAME TABLE u"]
        {
            let Kind::Change(crate::statement::Change::Insert(insert)) = parse(text).unwrap().kind else {
                panic!("{text}")
            };
            assert_eq!((insert.table.to_string(), insert.source.to_string()), ("t".into(), "SELECT * FROM u".into()));
        }
    }
}
