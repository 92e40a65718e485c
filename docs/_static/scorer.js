// The search of the site. Answers for users come before the reference, and both before notes on how tilepath is built. A
// term of the glossary comes first if it is the word that was sought; then the section that _ext/sought_words.py names
// for the word, under its heading. The other numbers are Sphinx's.
const withSection = (page, title, anchor) => {
  const { alltitles, docnames } = Search._index;
  const file = docnames.indexOf(page);
  const leads = ([, places]) => places.some(([of, id]) => of === file && `#${id}` === anchor);
  const heading = Object.entries(alltitles).find(leads)?.[0];
  return heading ? `${title} > ${heading}` : title;
};

var Scorer = {
  score: (result) => {
    const [page, title, anchor, , score, , kind] = result;
    if (kind === "index" && page !== "glossary") result[1] = withSection(page, title, anchor);
    if (kind !== "index" && /^(architecture|articles|benchmarks|butterfly|changelog|contributing|cpu|documents|engines|euler|failures|minplus|scaling|super-stages|training)$/.test(page))
      return score / 20;
    if (page === "glossary") {
      if (kind === "index") return 0; // the same term again, without its name
      const sought = new URLSearchParams(location.search).get("q")?.trim().toLowerCase();
      return kind === "object" && title.toLowerCase() === sought ? 3 * score : score / 4;
    }
    if (kind === "index") return score / 2;
    if (kind === "object") return /\..+\.|--/.test(title) ? score / 5 : score; // methods and options have common names
    return kind === "text" && page.startsWith("reference/") ? 0.6 * score : score;
  },
  objNameMatch: 8,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

// A word of three letters is only found as a whole word: MPI is not in "compile".
const withParts = Search.performTermsSearch;
Search.performTermsSearch = (words, excluded) => {
  for (const word of words)
    for (const known of [Search._index.terms, Search._index.titleterms])
      if (word.length < 4 && !Object.hasOwn(known, word)) known[word] = []; // Sphinx then looks for no parts
  return withParts(words, excluded);
};

// An entry of _ext/sought_words.py whose words are all in the query, in any form and order, leads to its section, too.
const SOUGHT = 17; // the score of an entry of one word: above a title that has a word of the query
const FURTHER_WORD = 8; // for each further word of an entry
const WHOLE_QUERY = 45; // the score of an entry that has all words of the query
const withSoughtWords = (query, found) => {
  const { indexentries, docnames, titles, filenames } = Search._index;
  const stemmer = new Stemmer();
  const stems = (text) => text.toLowerCase().trim().split(/[\s,;?!-]+/).map((word) => stemmer.stemWord(word));
  const sought = new Set(stems(query));
  for (const [entry, places] of Object.entries(indexentries)) {
    const words = places.some(([, , main]) => main) ? stems(entry) : [];
    if (!words.length || !words.every((word) => sought.has(word))) continue;
    const score = words.length === sought.size ? WHOLE_QUERY : SOUGHT + FURTHER_WORD * (words.length - 1);
    for (const [file, id, main] of places) {
      const [page, anchor] = [docnames[file], `#${id}`];
      if (!main || page === "glossary") continue;
      const there = found.find((result) => result[0] === page && result[2] === anchor);
      if (there) there[4] = Math.max(there[4], score);
      else found.push([page, withSection(page, titles[file], anchor), anchor, null, score, filenames[file], "index"]);
    }
  }
  return found.sort((one, other) => one[4] - other[4]); // the last one is shown first
};

// If nothing has all the words, the results for each word; first those of the most words.
const withAllWords = Search._performSearch;
Search._performSearch = (query, terms, excluded, marked, names) => {
  const found = withSoughtWords(query, withAllWords(query, terms, excluded, marked, names));
  const stemmer = new Stemmer();
  const words = splitQuery(query.toLowerCase()).filter((word) => terms.has(stemmer.stemWord(word)));
  if (found.length || words.length < 2) return found;
  const places = new Map();
  for (const word of words)
    for (const result of withAllWords(word, new Set([stemmer.stemWord(word)]), excluded, marked, new Set([word]))) {
      const place = `${result[0]}${result[2]}`;
      result[4] += places.get(place)?.[4] ?? 0;
      places.set(place, result);
    }
  return [...places.values()].sort((one, other) => one[4] - other[4]); // the last one is shown first
};

// The text below a result is that of the page or the section, without programs and without the titles above it, which
// the theme repeats on every page.
document.addEventListener("DOMContentLoaded", () => {
  const textOf = Search.htmlToText;
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const left = ".bd-header-article, .prev-next-footer, .headerlink, .highlight, h1";
    page.querySelectorAll(left).forEach((each) => each.remove());
    return textOf(page.documentElement.outerHTML, anchor).trim();
  };
});
