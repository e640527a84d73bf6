// Draws the charts of a report from the data beside them, with Apache ECharts. What the data of a chart is says
// fanlight_spark/jobs/charts.py. Names come from anybody: they are put into the page as text, never as HTML.
"use strict";
(() => {
  const BUTTONS = [
    ["log", "Log scale", "A logarithmic axis; what is 0 has no place on it"],
    ["in", "+", "Zoom in"], ["out", "−", "Zoom out"], ["left", "←", "To what is before"], ["right", "→", "To what is behind"],
    ["reset", "Reset", "All of it"], ["png", "PNG", "Download the chart as a picture"],
    ["csv", "CSV", "Download the data"],
  ];
  const FONT = "12px system-ui, sans-serif";
  const exact = new Intl.NumberFormat("en", { maximumSignificantDigits: 7 });
  const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 4, notation: "compact" });
  const tick = (value) => (Math.abs(value) < 10000 ? exact.format(value) : short.format(value));
  const clock = (value) => new Date(value).toISOString().replace("T", " ").replace(/(:00)?\.000Z$/, "") + " UTC";
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colors = () => Array.from({ length: 8 }, (_, number) => color(`--c${number}`));
  const cut = (text, letters) =>
    text.length <= letters ? text : `${text.slice(0, letters / 2)}…${text.slice(1 - letters / 2)}`;

  const measure = document.createElement("canvas").getContext("2d");
  measure.font = FONT;
  const wide = (texts) => Math.max(0, ...texts.map((text) => measure.measureText(text).width));

  class Chart {
    constructor(figure, number) {
      this.figure = figure;
      this.data = JSON.parse(figure.querySelector("script").textContent);
      this.title = figure.querySelector("figcaption").textContent || `chart ${number + 1}`;
      this.log = Boolean(this.data.y.log);
      this.pointed = -1;
      this.box = figure.querySelector(".chart");
      this.box.hidden = false;
      this.bar = figure.insertBefore(document.createElement("div"), this.box);
      this.bar.className = "buttons";
      for (const [does, text, about] of BUTTONS) {
        if (does === "log" && (this.data.kind === "candles" && this.least() <= 0)) continue;
        const button = this.bar.appendChild(document.createElement("button"));
        Object.assign(button, { type: "button", textContent: text, title: about });
        button.dataset.does = does;
        button.setAttribute("aria-label", `${about}: ${this.title}`);
        if (does === "log") button.setAttribute("aria-pressed", String(this.log));
        button.addEventListener("click", () => this.act(does, button));
      }
      this.box.style.height = `${this.height()}px`;
      this.drawn = echarts.init(this.box, null, { renderer: "canvas" });
      this.box.addEventListener("keydown", (event) => this.key(event));
      new ResizeObserver(() => { this.drawn.resize(); this.draw(); }).observe(this.box);
      this.draw();
    }

    get upright() { return this.data.kind !== "bars"; }
    least() { return Math.min(...this.data.candles.map((candle) => candle[2])); }
    height() {
      if (!this.upright) return 76 + 24 * this.data.x.values.length;
      return this.data.kind === "candles" && this.data.volumes ? 420 : 340;
    }

    xs(series) { return series.x || this.data.x.values; }
    middle() {
      const every = this.data.series.flatMap((series) => this.xs(series));
      return every.reduce((least, one) => Math.min(least, one), Infinity) + every.reduce((most, one) => Math.max(most, one), -Infinity);
    }
    value(number) { return number === null || (this.log && number <= 0) ? null : number; }

    // -- the drawing --------------------------------------------------------------------------------------------------

    axis(spec, more) {
      const soft = color("--soft");
      return {
        type: spec.scale || "value", name: spec.name, nameTextStyle: { color: soft }, axisLabel: { color: soft, hideOverlap: true },
        axisLine: { show: true, lineStyle: { color: soft } }, splitLine: { show: false }, ...more,
      };
    }

    amounts(more) {
      return this.axis({ name: this.data.y.name, scale: this.log ? "log" : "value" }, {
        axisLabel: { color: color("--soft"), formatter: tick, hideOverlap: true }, axisLine: { show: false },
        splitLine: { lineStyle: { color: color("--line") } }, scale: this.data.kind === "candles", ...more,
      });
    }

    marks() {
      const marks = this.data.marks || [];
      if (!marks.length) return undefined;
      return {
        silent: true, itemStyle: { color: color("--soft"), opacity: 0.16 },
        label: { color: color("--soft"), fontSize: 11 },
        // Beside the nearer end of the axis, a label goes towards the farther one.
        data: marks.map((mark) => [{ name: mark.name, xAxis: mark.from, label: {
          position: mark.from + mark.to > this.middle() ? "insideTopRight" : "insideTopLeft" } }, { xAxis: mark.to }]),
      };
    }

    lines() {
      const dots = this.data.kind === "dots";
      return this.data.series.map((series, number) => {
        const xs = this.xs(series), ys = series.y.map((one) => this.value(one));
        const alone = (at) => ys[at] !== null && (ys[at - 1] ?? null) === null && (ys[at + 1] ?? null) === null;
        return {
          type: dots ? "scatter" : "line", name: series.name, symbolSize: dots ? 6 : 5, symbol: dots ? "circle" : "none",
          lineStyle: { width: 1.8 }, connectNulls: false, markArea: number ? undefined : this.marks(),
          // A point between two gaps has no line to be seen by.
          data: ys.map((y, at) => (dots || !alone(at) ? [xs[at], y] : { value: [xs[at], y], symbol: "circle" })),
        };
      });
    }

    options() {
      const data = this.data, ink = color("--ink"), many = (data.series || []).length > 1;
      const common = {
        animation: false, useUTC: true, color: colors(), textStyle: { fontFamily: "system-ui, sans-serif", color: ink },
        aria: { enabled: true, label: { description: `${this.title}. ${this.summary()}` } },
        legend: many ? { top: 0, left: 0, type: "scroll", textStyle: { color: ink }, inactiveColor: color("--line"),
          pageTextStyle: { color: ink }, formatter: (name) => cut(name, 30), icon: "roundRect" } : undefined,
        tooltip: {
          trigger: data.kind === "dots" ? "item" : "axis", confine: true, formatter: (given) => this.tip(given),
          backgroundColor: color("--panel"), borderColor: color("--line"), textStyle: { color: ink, fontSize: 12 },
          axisPointer: { lineStyle: { color: color("--soft") }, shadowStyle: { color: color("--soft"), opacity: 0.1 } },
        },
      };
      const zoom = { filterMode: data.kind === "candles" ? "filter" : "none", minSpan: 0.5 };
      const slider = {
        ...zoom, type: "slider", borderColor: "transparent", backgroundColor: color("--panel"), textStyle: { color: "transparent" },
        fillerColor: "rgba(128, 140, 150, .25)", brushSelect: false, showDetail: false,
        dataBackground: { lineStyle: { color: color("--soft") }, areaStyle: { color: color("--line") } },
        selectedDataBackground: { lineStyle: { color: color("--c0") }, areaStyle: { color: color("--line") } },
      };
      const wheel = { ...zoom, type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false };
      if (data.kind === "bars") return { ...common, ...this.bars(wheel, slider) };
      const top = (many ? 34 : 10) + (data.y.name ? 22 : 4);
      const name = { nameLocation: "middle", nameGap: 26 };
      const grid = { left: 12, right: 20, top, bottom: data.x.name ? 62 : 42, outerBoundsMode: "same", outerBoundsContain: "axisLabel" };
      const up = { nameLocation: "end", nameGap: 10, nameTextStyle: { color: color("--soft"), align: "left", padding: [0, 0, 0, -22] } };
      if (data.kind === "candles") return { ...common, ...this.candles(wheel, slider, grid, up) };
      const times = data.x.scale === "time";
      return {
        ...common, grid, xAxis: this.axis(data.x, { ...name, axisLabel: times ? { color: color("--soft"), hideOverlap: true } :
          { color: color("--soft"), formatter: tick, hideOverlap: true }, scale: true, boundaryGap: data.kind === "dots" ? ["2%", "2%"] : false }),
        yAxis: this.amounts(up), series: this.lines(),
        dataZoom: [wheel, { ...slider, bottom: 4, height: 20, left: 12, right: 20 }],
      };
    }

    bars(wheel, slider) {
      const { x, y, series } = this.data, soft = color("--soft"), room = Math.min(230, 0.42 * this.box.clientWidth);
      const letters = Math.max(8, Math.floor(room / 7) & ~1);
      const values = series[0].y.map((one) => this.value(one));
      const least = Math.min(...values.filter((one) => one !== null));
      const zooming = x.values.length > 8, labels = wide(values.filter((one) => one !== null).map((one) => short.format(one)));
      return {
        grid: { left: 8 + wide(x.values.map((one) => cut(one, letters))) + 10, right: labels + 12 + (zooming ? 24 : 0), top: 8, bottom: 46 },
        yAxis: this.axis({ scale: "category" }, {
          data: x.values, inverse: true, axisTick: { show: false },
          axisLabel: { color: color("--ink"), interval: 0, formatter: (name) => cut(name, letters) },
        }),
        xAxis: this.amounts({
          nameLocation: "middle", nameGap: 26, nameTextStyle: { color: soft }, splitNumber: this.box.clientWidth < 500 ? 2 : 5,
          min: this.log ? 10 ** Math.floor(Math.log10(least) - 1e-9) : undefined, name: y.name + (this.log ? ", log scale" : ""),
        }),
        dataZoom: zooming ? [{ ...wheel, orient: "vertical" }, { ...slider, orient: "vertical", right: 4, width: 16, top: 8, bottom: 46 }] : [],
        series: [{
          type: "bar", name: y.name, data: values, barMaxWidth: 16, itemStyle: { borderRadius: 2 },
          label: { show: true, position: "right", color: soft, formatter: (one) => short.format(one.value) },
        }],
      };
    }

    candles(wheel, slider, grid, up) {
      const { x, candles, volumes, y } = this.data, soft = color("--soft");
      const category = (more) => this.axis({ scale: "category" }, { data: x.values, ...more });
      const rise = color("--c2"), fall = color("--c1");
      const made = {
        grid: [{ ...grid, bottom: volumes ? 136 : 42 }], yAxis: [this.amounts(up)], xAxis: [category({})],
        series: [{
          type: "candlestick", name: y.name, data: candles.map((one) => one.slice(0, 4)),
          itemStyle: { color: color("--ground"), color0: fall, borderColor: rise, borderColor0: fall },
        }],
      };
      if (volumes) {
        // One label of the volumes, or they lie one upon another; both grids begin at the same place.
        const left = 24 + wide([...candles.flatMap((one) => [one[2], one[3]]), ...volumes].filter((one) => one !== null).map(tick));
        Object.assign(made.grid[0], { left, outerBoundsMode: "none" });
        made.grid.push({ left, right: 20, height: 56, bottom: 42 });
        made.xAxis[0].axisLabel = { show: false };
        made.xAxis.push(category({ gridIndex: 1 }));
        made.yAxis.push({ ...this.axis({ scale: "value" }, { gridIndex: 1, splitNumber: 1, axisLine: { show: false },
          axisLabel: { color: soft, formatter: tick, showMinLabel: false } }), name: "volume", nameTextStyle: { color: soft } });
        made.series.push({
          type: "bar", name: "volume", xAxisIndex: 1, yAxisIndex: 1, barMaxWidth: 12,
          data: volumes.map((value, at) => ({ value, itemStyle: { color: candles[at][1] >= candles[at][0] ? rise : fall, opacity: 0.6 } })),
        });
      }
      const both = volumes ? [0, 1] : [0];
      return {
        ...made, axisPointer: { link: [{ xAxisIndex: "all" }] },
        dataZoom: [{ ...wheel, xAxisIndex: both }, { ...slider, xAxisIndex: both, bottom: 4, height: 20, left: 12, right: 20 }],
      };
    }

    draw() {
      const kept = (this.drawn.getOption()?.dataZoom || []).map(({ start, end }) => ({ start, end }));
      this.drawn.setOption(this.options(), { notMerge: true });
      if (kept.length) this.zoom(kept[0].start, kept[0].end);
      this.drawn.getZr().flush();
      this.box.setAttribute("aria-label", `${this.title}. ${this.summary()} Arrow keys go through the values.`);
      this.figure.dataset.drawn = "yes";
    }

    // -- what it says -------------------------------------------------------------------------------------------------

    summary() {
      const values = this.data.kind === "candles" ? this.data.candles.flatMap((one) => one.slice(2, 4)) :
        this.data.series.flatMap((series) => series.y);
      const known = values.filter((one) => one !== null);
      if (!known.length) return "There is nothing to draw.";
      let [least, most] = [Infinity, -Infinity];
      for (const one of known) { least = Math.min(least, one); most = Math.max(most, one); }
      return `From ${exact.format(least)} to ${exact.format(most)}${this.data.y.name ? `, ${this.data.y.name}` : ""}.`;
    }

    place(x) { return this.data.x.scale === "time" ? clock(x) : typeof x === "number" ? exact.format(x) : String(x); }

    tip(given) {
      const found = Array.isArray(given) ? given : [given];
      const box = document.createElement("div");
      const first = found[0], x = this.upright && this.data.kind !== "candles" ? first.value[0] : first.name;
      box.appendChild(document.createElement("b")).textContent = cut(this.place(x), 120);
      const row = (name, value, mark) => {
        const line = box.appendChild(document.createElement("div"));
        if (mark) {
          const dot = line.appendChild(document.createElement("span"));
          dot.className = "dot";
          dot.style.background = mark;
        }
        line.appendChild(document.createTextNode(`${name ? `${cut(name, 40)}: ` : ""}${value}`));
      };
      if (this.data.kind === "candles") {
        const [open, close, low, high] = this.data.candles[first.dataIndex], volume = this.data.volumes?.[first.dataIndex];
        for (const [name, value] of Object.entries({ open, high, low, close, volume })) {
          if (value !== undefined && value !== null) row(name, exact.format(value));
        }
      } else {
        for (const one of found) {
          const value = Array.isArray(one.value) ? one.value[1] : one.value;
          const shown = value === null || value === undefined || Number.isNaN(value) ? "nothing" : exact.format(value);
          row(one.seriesName, shown, found.length > 1 || this.data.kind === "dots" ? one.color : "");
        }
      }
      return box;
    }

    table() {
      const { kind, x, y, series, candles, volumes } = this.data;
      const place = (one) => (x.scale === "time" ? new Date(one).toISOString() : one);
      if (kind === "candles") {
        return [["start", "open", "high", "low", "close", ...(volumes ? ["volume"] : [])],
          ...candles.map(([open, close, low, high], at) => [x.values[at], open, high, low, close, ...(volumes ? [volumes[at]] : [])])];
      }
      const head = [x.name || (x.scale === "time" ? "time" : x.scale === "category" ? "name" : "x"),
        ...series.map((one) => one.name || y.name || "y")];
      if (kind === "dots" || series.some((one) => one.x)) {
        return [["series", head[0], y.name || "y"],
          ...series.flatMap((one) => this.xs(one).map((at, number) => [one.name, place(at), one.y[number]]))];
      }
      return [head, ...x.values.map((at, number) => [place(at), ...series.map((one) => one.y[number])])];
    }

    csv() {
      const field = (value) => {
        if (value === null || value === undefined) return "";
        if (typeof value === "number") return String(value);
        const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;  // which a spreadsheet would compute
        return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
      };
      return this.table().map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
    }

    // -- what one does with it ----------------------------------------------------------------------------------------

    act(does, button) {
      if (does === "log") {
        this.log = !this.log;
        button.setAttribute("aria-pressed", String(this.log));
        this.draw();
      } else if (does === "png") this.picture();
      else if (does === "csv") this.save(new Blob(["\ufeff", this.csv()], { type: "text/csv" }), "csv");
      else this.move(does);
    }

    move(does) {
      const { start, end } = this.drawn.getOption().dataZoom?.[0] || { start: 0, end: 100 };
      const span = end - start, centre = (start + end) / 2;
      const half = { in: span / 4, out: Math.min(span, 50), reset: 50 }[does];
      if (half !== undefined) {
        const at = Math.max(half, Math.min(100 - half, centre));
        this.zoom(at - half, at + half);
      } else {
        const by = Math.max(-start, Math.min(100 - end, (does === "left" ? -0.5 : 0.5) * span));
        this.zoom(start + by, end + by);
      }
    }

    zoom(start, end) {
      const count = this.drawn.getOption().dataZoom?.length || 0;
      const batch = Array.from({ length: count }, (_, dataZoomIndex) => ({ dataZoomIndex, start, end }));
      if (count) this.drawn.dispatchAction({ type: "dataZoom", batch }, { flush: true });
    }

    key(event) {
      const steps = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }, zooms = { "+": "in", "-": "out", 0: "reset" };
      if (event.key in steps) {
        const count = this.data.candles?.length || this.data.series?.[0]?.y.length || 0;
        this.pointed = Math.max(0, Math.min(count - 1, this.pointed + steps[event.key]));
        this.drawn.dispatchAction({ type: "showTip", seriesIndex: 0, dataIndex: this.pointed });
      } else if (event.key in zooms) this.move(zooms[event.key]);
      else if (event.key === "Escape") this.drawn.dispatchAction({ type: "hideTip" });
      else return;
      event.preventDefault();
    }

    picture() {
      const options = this.options();
      const taller = this.height() + 40, canvas = document.createElement("div");
      Object.assign(canvas.style, { width: `${this.box.clientWidth}px`, height: `${taller}px`, position: "absolute", left: "-99999px" });
      document.body.appendChild(canvas);
      const copy = echarts.init(canvas, null, { renderer: "canvas" });
      const lower = (grid) => ({ ...grid, top: grid.top === undefined ? undefined : grid.top + 34 });
      const kept = this.drawn.getOption().dataZoom || [];
      copy.setOption({
        ...options, title: { text: this.title, left: 8, top: 8, textStyle: { color: color("--ink"), fontSize: 14, width: this.box.clientWidth - 24, overflow: "truncate" } },
        grid: Array.isArray(options.grid) ? options.grid.map(lower) : lower(options.grid),
        legend: options.legend && { ...options.legend, top: 34 },
        dataZoom: (options.dataZoom || []).map((one, at) => ({ ...one, start: kept[at]?.start, end: kept[at]?.end, show: false })),
      });
      copy.getZr().flush();
      const url = copy.getDataURL({ type: "png", pixelRatio: 2, backgroundColor: color("--ground") });
      copy.dispose();
      canvas.remove();
      this.save(url, "png");
    }

    save(what, kind) {
      const link = document.createElement("a"), url = typeof what === "string" ? what : URL.createObjectURL(what);
      Object.assign(link, { href: url, download: `${this.title.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "chart"}.${kind}` });
      link.click();
      if (typeof what !== "string") setTimeout(() => URL.revokeObjectURL(url), 60000);
    }
  }

  const charts = Array.from(document.querySelectorAll("figure.data"), (figure, number) => new Chart(figure, number));
  const redraw = () => charts.forEach((chart) => chart.draw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  // Paper is white, whatever the screen is.
  addEventListener("beforeprint", () => { document.documentElement.dataset.theme = "light"; redraw(); });
  addEventListener("afterprint", () => { delete document.documentElement.dataset.theme; redraw(); });
})();
