// The search of the site: answers for users come before notes on how tilepath is built. The other numbers are Sphinx's.
var Scorer = {
  score: ([page, , , , score]) =>
    /^(architecture|benchmarks|changelog|contributing|cpu|documents|minplus|scaling)$/.test(page) ? score / 20 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
