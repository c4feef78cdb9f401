// Randomise one answer before it leaves the browser: the client of Noisegate's local collectors. No dependencies.
//
//     const report = NoisegateLocal.encodeOnce(localStorage, collector, law, value);
//
// `law` is the object of that name in GET /v1/collectors/{collector}, `value` the place of the answer in the domain,
// counted from 0; the report is an array of whole numbers. Show NoisegateLocal.epsilonOf(law) before anything is sent.
// `encodeOnce` keeps the report, so that the same one is sent again where a reply was lost or the page is loaded anew:
// every fresh report (`encode(law, value)`) of one answer costs epsilon again. The same draws as clients/local_encoder.py, byte for byte (tests/vectors).

(function (root, make) {
  "use strict";
  if (typeof module === "object" && module.exports) {
    module.exports = make();
  } else {
    root.NoisegateLocal = make();
  }
})(typeof self === "undefined" ? this : self, function () {
  "use strict";

  const UNIT = 1n << 32n;

  function systemBytes(count) {
    return crypto.getRandomValues(new Uint8Array(count));
  }

  function bitLength(number) {
    return number === 0n ? 0 : number.toString(2).length;
  }

  // Exact draws from a source of random bytes; whole numbers are BigInt.
  function drawsFrom(randomBytes) {
    function below(bound) {
      const width = bitLength(bound - 1n);
      while (width > 0) {
        let drawn = 0n;
        for (const byte of randomBytes(Math.ceil(width / 8))) {
          drawn = (drawn << 8n) | BigInt(byte);
        }
        drawn &= (1n << BigInt(width)) - 1n;
        if (drawn < bound) {
          return drawn;
        }
      }
      return 0n;
    }
    return { below: below, happens: (weight, against) => below(weight + against) < weight };
  }

  function read(law) {
    const encoding = law.encoding;
    if (typeof encoding !== "string" || !Object.prototype.hasOwnProperty.call(ENCODERS, encoding)) {
      throw new RangeError("the law names no encoding that this client knows");
    }
    if (!Number.isInteger(law.size) || law.size < 2 || law.size > 1048576) {
      throw new RangeError("the law has no size between 2 and 1048576");
    }
    if (typeof law.ratio !== "string" || !/^[0-9]{1,20}$/.test(law.ratio)) {
      throw new RangeError("the law has no ratio between 2^32 and 2^56, as a string of digits");
    }
    const ratio = BigInt(law.ratio);
    if (ratio <= UNIT || ratio >= 1n << 56n) {
      throw new RangeError("the law has no ratio between 2^32 and 2^56, as a string of digits");
    }
    return { encoding: encoding, size: law.size, ratio: ratio };
  }

  // The epsilon that a report by this law costs; for people to read.
  function epsilonOf(law) {
    const found = read(law);
    return (found.encoding === "rappor" ? 2 : 1) * Math.log(Number(found.ratio) / Number(UNIT));
  }

  function encode(law, value, randomBytes) {
    const found = read(law);
    if (!Number.isInteger(value) || value < 0 || value >= found.size) {
      throw new RangeError("the value is the place of an answer in the domain, from 0 to " + (found.size - 1));
    }
    const draws = drawsFrom(randomBytes || systemBytes);
    return ENCODERS[found.encoding](BigInt(found.size), found.ratio, BigInt(value), draws).map(Number);
  }

  // The report that was kept under this name (a collector's identifier) in a storage such as localStorage, or a fresh one
  // that is kept before it is returned. A page that is loaded again sends the same report, whatever is answered then.
  function encodeOnce(storage, name, law, value, randomBytes) {
    const key = "noisegate-report-" + name;
    const kept = storage.getItem(key);
    if (kept !== null) {
      return JSON.parse(kept);
    }
    const report = encode(law, value, randomBytes);
    storage.setItem(key, JSON.stringify(report));
    return report;
  }

  function ceilDivide(number, divisor) {
    return (number + divisor - 1n) / divisor;
  }

  function randomisedResponse(size, ratio, value, draws) {
    if (draws.happens(ratio, (size - 1n) * UNIT)) {
      return [value];
    }
    const other = draws.below(size - 1n);
    return [other >= value ? other + 1n : other];
  }

  function unary(size, value, ownDraw, otherDraw) {
    const report = [];
    for (let at = 0n; at < size; at += 1n) {
      if (at === value ? ownDraw() : otherDraw()) {
        report.push(at);
      }
    }
    return report;
  }

  function optimisedUnary(size, ratio, value, draws) {
    return unary(size, value, () => draws.happens(1n, 1n), () => draws.happens(UNIT, ratio));
  }

  function rappor(size, ratio, value, draws) {
    return unary(size, value, () => draws.happens(ratio, UNIT), () => draws.happens(UNIT, ratio));
  }

  function subsetSelection(size, ratio, value, draws) {
    const chosen = ceilDivide(size * UNIT, ratio + UNIT);
    const inside = draws.happens(chosen * ratio, (size - chosen) * UNIT);
    let needed = inside ? chosen - 1n : chosen;
    const report = inside ? [value] : [];
    for (let column = 0n; column < size - 1n; column += 1n) {
      if (draws.below(size - 1n - column) < needed) {
        needed -= 1n;
        report.push(column >= value ? column + 1n : column);
      }
    }
    return report.sort((left, right) => (left < right ? -1 : 1));
  }

  // The bits of the index around the lowest bit of the row, which makes the common bits odd or even in number.
  function columnOf(index, row, odd) {
    const lowest = row & -row;
    const below = index & (lowest - 1n);
    const column = ((index ^ below) << 1n) | below;
    let common = column & row;
    let parity = false;
    while (common > 0n) {
      common &= common - 1n;
      parity = !parity;
    }
    return parity !== odd ? column | lowest : column;
  }

  function hadamard(size, ratio, value, draws) {
    const twice = 2n * size;
    const whole = ratio / UNIT;
    const parts = 1n << BigInt(bitLength(twice < whole ? twice : whole) - 1);
    const order = 1n << BigInt(bitLength(ceilDivide(size, parts)));
    const width = order - 1n;
    const half = order / 2n;
    const columns = ceilDivide(size, width) * width;
    const start = (value / width) * width;
    const row = (value % width) + 1n;
    if (draws.happens(half * ratio, (columns - half) * UNIT)) {
      return [start + columnOf(draws.below(half), row, true) - 1n];
    }
    const other = draws.below(columns - half);
    if (other < half - 1n) {
      return [start + columnOf(other + 1n, row, false) - 1n];
    }
    const far = other - (half - 1n);
    return [far >= start ? far + width : far];
  }

  const ENCODERS = {
    randomised_response: randomisedResponse,
    hadamard: hadamard,
    subset_selection: subsetSelection,
    optimised_unary: optimisedUnary,
    rappor: rappor,
  };

  return { encode: encode, encodeOnce: encodeOnce, epsilonOf: epsilonOf };
});
