// The search of the site. Answers for users come before the reference, and both before notes on how tilepath is built. A
// term of the glossary comes first if it is the word that was sought. The other numbers are Sphinx's.
var Scorer = {
  score: ([page, title, , , score, , kind]) => {
    if (/^(architecture|benchmarks|butterfly|changelog|contributing|cpu|documents|engines|euler|minplus|reliability|scaling)$/.test(page))
      return score / 20;
    if (page === "glossary") {
      if (kind === "index") return 0; // the same term again, without its name
      const sought = new URLSearchParams(location.search).get("q")?.trim().toLowerCase();
      return kind === "object" && title.toLowerCase() === sought ? 3 * score : score / 4;
    }
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
