// An account under a reserve, which is not to fall below zero, and what each reserve loses: the valley.
live.pictures.reserve = ({ income, costs, reserves, reserve, hours, terms, exact, shown, looks }, kit) => {
  const { make, axes, line, tidy, random } = live, [often, ratio, price, less] = terms, sea = { seed: 1 };
  const parts = (u, T) => [often * T * ratio ** (u - 1), price * u - less];      // lost by skipped hours, and left over
  const lost = (u, T) => parts(u, T)[0] + parts(u, T)[1];
  const best = T => reserves.reduce((found, u) => lost(u, T) < lost(found, T) ? u : found);
  const life = u => {      // what the account holds after each hour; how many hours were skipped
    const next = random(sea.seed), path = [];
    let held = 0, skips = 0;
    for (let t = 0; t < shown; t++) {
      held += income;
      const drawn = next();
      if (held < 1) skips++; else held -= drawn < costs[held >= u ? 1 : 0] ? 1 : 0;
      path.push(held);
    }
    return { path, skips };
  };
  kit.slider("u", "reserve (units)", reserves, reserve);
  kit.slider("T", "hours", hours, hours[hours.length >> 1]);
  kit.button("another sea", () => {
    sea.seed++;
    kit.set("u", kit.values.u);
  });
  return (svg, width, { u, T }) => {
    const wide = width > 620, half = wide ? Math.round(width * .46) : width, { path, skips } = life(u), ends = hours.at(-1);
    const left = { left: 34, top: 28, width: half - 34 - (wide ? 40 : 20), height: 170 };
    const right = { left: wide ? half + 50 : 62, top: wide ? 28 : 290, width: width - (wide ? half + 70 : 82), height: 170 };
    const { X, Y } = axes(svg, left, { x: [0, shown], y: [0, 18], xlabel: "hour", title: `Account (units) in the first ${shown} hours` });
    line(svg, [[left.left, Y(u)], [left.left + left.width, Y(u)]], ["#7F7F7F", "3 3"], 1);
    line(svg, path.map((held, t) => [X(t + 1), Y(held)]), looks[0], 1.2);
    const { X: x, Y: y } = axes(svg, right, { x: [reserves[0], reserves.at(-1)], y: [2, 3e5], ylog: true, xlabel: "reserve (units)",
      title: "Regret (reports) of each reserve" });
    for (const each of [hours[0], ends]) {
      line(svg, reserves.map(v => [x(v), y(lost(v, each))]), ["#999"], 1);
      const [at, below] = each === ends ? [reserves[3], 0] : [reserves[0], 30];
      svg.append(make("text", { x: x(at) + 6, y: y(lost(at, each)) + below, fill: "#666" }, `${tidy(each)} hours`));
    }
    for (const [v, value] of exact) svg.append(make("circle", { cx: x(v), cy: y(value), r: 3, fill: "#666" }));
    line(svg, reserves.map(v => [x(v), y(lost(v, T))]), looks[0], 2.2);
    line(svg, [[x(best(T)), right.top], [x(best(T)), right.top + right.height]], ["#7F7F7F", "3 3"], 1);
    svg.append(make("circle", { cx: x(u), cy: y(lost(u, T)), r: 5, fill: looks[0][0], stroke: "#fff" }));
    const told = { lost: lost(u, T), parts: parts(u, T), best: best(T), skips, path };
    return { height: right.top + right.height + 42, told, says: `A reserve of ${tidy(u)} loses ${tidy(told.lost)} reports in ` +
      `${tidy(T)} hours: ${tidy(told.parts[0])} by skipped hours, ${tidy(told.parts[1])} by charge left over. ` +
      `The best reserve, ${tidy(told.best)}, loses ${tidy(lost(told.best, T))}. Of the ${shown} hours drawn ${skips} are skipped.` };
  };
};
