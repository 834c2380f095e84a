// Run by page_test.sh in the page of a record with 36 chunks, three decisions about the farm, and three failures.
(async () => {
  const p = kilterPage, d = p.data, near = (a, b) => Math.abs(a - b) <= 1e-9 + 1e-4 * Math.abs(b);
  const must = (right, what) => { if (!right) throw new Error(what); };
  const press = key => document.getElementById('timeline').dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
  const frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  must(window.evil === undefined, 'a name of the record was run as a script');
  must(document.title.startsWith('</script>'), `title: ${document.title}`);
  must(d.chunks.count === 36, `${d.chunks.count} chunks`);
  must(near(d.chunks.busy.reduce((a, b) => a + b), 3 * 4), 'busy time');
  must(d.chunks.tasks.reduce((a, b) => a + b) === 360, 'tasks');
  must(d.marks.length === 6, `${d.marks.length} marks`);
  must(d.firstOf(0) === 0 && d.firstOf(d.lanes[1].from) === 10, 'first tasks');

  // the keyboard
  const whole = p.view;
  must(whole.from === 0 && near(whole.to, 42.5), 'the whole run is not shown');
  press('+');
  must(near(p.view.to - p.view.from, 42.5 / 2), 'plus does not zoom');
  press('ArrowRight');
  must(p.view.from > 42.5 / 4, 'the arrow does not move');
  press('0');
  must(near(p.view.to - p.view.from, 42.5), '0 does not show all');
  press('n');
  await frame();
  must(document.getElementById('detail').textContent.includes('Failure of task 31, attempt 1'), `detail: ${document.getElementById('detail').textContent}`);
  for (let i = 0; i < 3; i++) press('n');
  must(document.getElementById('detail').textContent.includes('Decision: workers'), `detail: ${document.getElementById('detail').textContent}`);
  must(document.getElementById('detail').textContent.includes('later than forecast'), 'the outcome is missing');

  // the picture is right: at each zoom, the darkness of worker 0's row adds up to the worker's busy time
  const canvas = document.getElementById('timeline'), row = 44 + 8, left = 118;
  for (const [from, to, busy] of [[0, 42.5, 6], [1, 3.125, 2], [1, 1.2, 0.2 * 0.25 / 0.2578125]]) {
    p.show(from, to);
    p.draw();
    const width = p.drawn.l.width, pixels = canvas.getContext('2d').getImageData(left, row, width, 1).data;
    const light = [0xe9, 0xed, 0xf2], dark = [0x1f, 0x5f, 0xa8];
    let sum = 0;
    for (let x = 0; x < width; x++) sum += Math.max(0, Math.min(1, (light[0] - pixels[4 * x]) / (light[0] - dark[0])));
    const seen = sum / width * (to - from);
    must(Math.abs(seen - busy) < 0.03 * busy, `from ${from} to ${to}: ${seen} s are drawn, not ${busy}`);
  }

  // tables stand behind the pictures
  for (const box of document.querySelectorAll('details')) { box.open = true; }
  await frame();
  const captions = [...document.querySelectorAll('caption')].map(c => c.textContent);
  for (const name of ['Decisions', 'Failures', 'Workers', 'Runs', 'Shares of the time', 'Speeds over time', 'Time against the number of workers'])
    must(captions.includes(name), `no table ${name}: ${captions}`);
  must(document.querySelectorAll('[role=img]:not([aria-label])').length === 0, 'a picture has no label');
  return 'right';
})()
