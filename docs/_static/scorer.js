// The search of the site: answers for users come before notes on how tilepath is built. The other numbers are Sphinx's.
var Scorer = {
  score: ([page, , , , score]) =>
    /^(architecture|benchmarks|butterfly|changelog|contributing|cpu|documents|engines|euler|minplus|reliability|scaling)$/.test(page) ? score / 20 : page === "glossary" ? 3 * score : score,
  objNameMatch: 8,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
