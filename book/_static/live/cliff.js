// The cliff of a cost subsidy: what policies lose as the cheap arm's mean passes (1 - alpha) times the best.
live.pictures.cliff = ({ best, alpha, rounds, means, mean, losses, looks }, kit) => {
  const { make, axes, line, names, legend, tidy } = live, labels = Object.keys(losses), border = (1 - alpha) * best;
  const zone = (1 - alpha) * ((1 - alpha) * rounds) ** (-1 / 3), all = labels.flatMap(label => losses[label]);
  kit.slider("mean", "quality of A", means, mean);
  return (svg, width, { mean }) => {
    const wide = width > 620, at = means.indexOf(mean), enough = mean >= border - 1e-9, close = Math.abs(mean - border) < zone;
    const arms = { left: 70, top: 28, width: width - 70 - (wide ? 120 : 20), height: 54 };
    const { X } = axes(svg, arms, { x: [means[0], Math.max(best, means.at(-1))], title: "Quality, and the bar (dotted)" });
    const band = box => svg.append(make("rect", { x: X(border - zone), y: box.top, width: X(border + zone) - X(border - zone), height: box.height,
      fill: "#E6E6E6" }));
    band(arms);
    [["B", best, 12], ["A", mean, 40]].forEach(([name, value, y]) => svg.append(
      make("text", { x: arms.left - 8, y: arms.top + y + 4, class: "end" }, name),
      make("circle", { cx: X(value), cy: arms.top + y, r: 5, fill: name === "A" && !enough ? "#D55E00" : "#0072B2" })));
    const box = { ...arms, top: 134, height: 220 };
    const { Y } = axes(svg, box, { x: [means[0], Math.max(best, means.at(-1))], y: [10, Math.max(...all) * 1.2], ylog: true,
      xlabel: "quality of A", title: `Regret in ${tidy(rounds)} messages` });
    band(box);
    line(svg, [[X(border), arms.top], [X(border), box.top + box.height]], ["#000", "3 3"], 1);
    line(svg, [[X(mean), box.top], [X(mean), box.top + box.height]], ["#7F7F7F"], 1);
    labels.forEach(label => line(svg, losses[label].map((lost, k) => [X(means[k]), Y(lost)]), looks[label]));
    labels.forEach(label => svg.append(make("circle", { cx: X(mean), cy: Y(losses[label][at]), r: 4, fill: looks[label][0], stroke: "#fff" })));
    const ends = labels.map(text => ({ text, y: Y(losses[text].at(-1)), look: looks[text] }));
    if (wide) names(svg, X(means.at(-1)), ends, box.top, box.top + box.height); else legend(svg, box.top + box.height + 54, ends);
    const told = { border, close, enough, order: [...labels].sort((a, b) => losses[a][at] - losses[b][at]) };
    return { height: box.top + box.height + (wide ? 42 : 64), told, says: `At ${tidy(mean)} A is ${enough ? "good enough" : `short of the bar, ${tidy(border)}`}` +
      `${close ? ", in the grey zone" : ""}. From the smallest regret: ` +
      told.order.map(label => `${label} ${tidy(losses[label][at])}`).join(", ") + "." };
  };
};
