// The page that compares runs: charts.js stands before it, and the data in the page.
const data = JSON.parse(document.getElementById("data").textContent);
const redraw = () => { for (const chart of data.charts) drawChart(document.getElementById(chart.id), chart, data, options); };
const options = addControls(document.getElementById("controls"), redraw);
new ResizeObserver(redraw).observe(document.querySelector(".charts"));
redraw();
