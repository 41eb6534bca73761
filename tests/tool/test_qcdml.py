"""lime qcdml and lime check --qcdml: documents of ILDG's catalogues, including hostile ones."""
import json
import os
import random
import re
import shutil
import struct
import sys
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import limetest
import scidac
from limetest import container, run
from scidac import cksum

SPACE = "http://www.lqcd.org/ildg/QCDml/config2.0"
DIMS = (2, 2, 2, 4)

# The part of the QCDml schema with the elements that matter here.
SCHEMA = f"""<?xml version="1.0"?>
<s:schema xmlns:s="http://www.w3.org/2001/XMLSchema" xmlns="{SPACE}" targetNamespace="{SPACE}"
          elementFormDefault="qualified">
 <s:element name="gaugeConfiguration"><s:complexType><s:sequence>
  <s:element name="dataLFN" type="s:anyURI"/>
  <s:element name="note" type="s:string" minOccurs="0"/>
  <s:element name="precision"><s:simpleType><s:restriction base="s:NMTOKEN">
   <s:enumeration value="single"/><s:enumeration value="double"/><s:enumeration value="mixed"/>
  </s:restriction></s:simpleType></s:element>
  <s:element name="markovSequence"><s:complexType><s:sequence>
   <s:element name="markovStep" maxOccurs="unbounded"><s:complexType><s:sequence>
    <s:element name="update" type="s:positiveInteger"/>
    <s:element name="record" maxOccurs="unbounded"><s:complexType><s:sequence>
     <s:element name="field"><s:simpleType><s:restriction base="s:token">
      <s:pattern value="su[2-9]gauge"/><s:pattern value="u1phase"/></s:restriction></s:simpleType>
     </s:element>
     <s:element name="crcCheckSum" type="s:NMTOKEN"/>
     <s:element name="avePlaquette" type="s:double"/>
    </s:sequence></s:complexType></s:element>
   </s:sequence></s:complexType></s:element>
  </s:sequence></s:complexType></s:element>
 </s:sequence></s:complexType></s:element>
</s:schema>
"""


def record(field="", crc="", plaquette=""):
    return (f"      <record>\n        <field>{field}</field>\n"
            f"        <crcCheckSum>{crc}</crcCheckSum>\n"
            f"        <avePlaquette>{plaquette}</avePlaquette>\n      </record>\n")


def document(*steps, lfn="", precision="", head='<?xml version="1.0"?>\n', update="400"):
    """Returns a document; each step is a list of records."""
    return (head + f'<gaugeConfiguration xmlns="{SPACE}">\n  <dataLFN>{lfn}</dataLFN>\n'
            f"  <precision>{precision}</precision>\n  <markovSequence>\n" +
            "".join(f"    <markovStep>\n      <update>{update}</update>\n{''.join(records)}"
                    "    </markovStep>\n" for records in steps) +
            "  </markovSequence>\n</gaugeConfiguration>\n")


def values(text):
    """Returns the document's values, by an independent XML reader."""
    root = ElementTree.fromstring(text)
    get = lambda node, name: node.find(f"{{{SPACE}}}{name}").text
    records = [tuple(get(node, name) for name in ("field", "crcCheckSum", "avePlaquette"))
               for node in root.iter(f"{{{SPACE}}}record")]
    return get(root, "dataLFN"), get(root, "precision"), records


def xlf(plaquette):
    return ("xlf-info", f"plaquette = {plaquette}\n trajectory nr = 3, beta = 6.0\n".encode())


class QcdmlCase(limetest.TestCase):
    DATA = scidac.field(DIMS, 576, seed=11)

    def conf(self, *more, name="conf.lime", plaquette="0.588", lfn="lfn://ldg/etm/b1/0042"):
        items = [[xlf(plaquette)]] if plaquette else []
        items.append(scidac.records(DIMS, self.DATA) +
                     ([("ildg-data-lfn", lfn.encode())] if lfn else []))
        return self.write(name, container(items + list(more)))

    def put(self, name, text):
        return self.write(name, text.encode() if isinstance(text, str) else text)

    def qcdml(self, *args, status=0):
        done = run(["lime", "qcdml", *args])
        self.err = done.stderr.decode()
        self.assertEqual(done.returncode, status, done.stdout.decode("latin-1") + self.err)
        return done.stdout

    def fill(self, text, path, *args, status=0):
        return self.qcdml("--template", self.put("t.xml", text), *args, path, status=status)

    def check(self, text, path, *args, status=0):
        doc = self.put("doc.xml", text)
        self.lime("check", *args, "--qcdml", doc, path, status=status)
        return doc


class Fill(QcdmlCase):
    def test_all(self):
        out = self.fill(document([record()]), self.conf())
        self.assertEqual(values(out), ("lfn://ldg/etm/b1/0042", "double",
                                       [("su3gauge", str(cksum(self.DATA)), "0.588")]))
        want = document([record("su3gauge", cksum(self.DATA), "0.588")],
                        lfn="lfn://ldg/etm/b1/0042", precision="double")
        self.assertEqual(out.decode(), want)

    def test_corpus(self):
        """Each configuration of real writers agrees with the document that lime has filled in."""
        count = 0
        for row in limetest.manifest():
            if row["type"] != "ildg-binary-data" or row["file"].startswith("clime_pack"):
                continue
            data = self.run_ok(["lime", "cat", row["path"], str(row["ordinal"])])
            out = self.fill(document([record()]), row["path"], "--lfn", "lfn://a/b",
                            "--plaquette", "0.5")
            self.assertEqual(values(out)[2], [("su3gauge", str(cksum(data)), "0.5")])
            out = self.fill(document([record()]), row["path"], "--lfn", "lfn://a/b")
            if row["file"].startswith("tm_"):
                info = json.loads(self.run_ok(["lime", "info", "--json", row["path"]]))
                self.assertAlmostEqual(float(values(out)[2][0][2]), delta=1e-7,
                                       second=float(info["info"][0]["facts"]["plaquette"]))
                self.check(out, row["path"], status=0)
            count += 1
        self.assertGreaterEqual(count, 3)

    def test_computed(self):
        """lime computes the plaquette of SU(3) links (here all 1) and ignores the metadata."""
        for precision, code, want in ((64, "d", "1.000000000000"), (32, "f", "1.00000000")):
            one = struct.pack(f">18{code}", *([1, 0] + [0] * 6) * 2, 1, 0) * 4 * 32
            path = self.write("one.lime", container(
                [[xlf("0.5")], [("ildg-data-lfn", b"lfn://a"),
                                ("ildg-format", scidac.ildg_format(DIMS, precision)),
                                ("ildg-binary-data", one)]]))
            out = self.fill(document([record()]), path)
            self.assertEqual(values(out)[2], [("su3gauge", str(cksum(one)), want)])
            self.check(out, path)
            self.check(out.decode().replace(want, "0.5"), path, status=1)
            self.assertIn(f"avePlaquette 0.5, not {want}: as computed from the links", self.err)
            self.assertEqual(values(self.fill(document([record()]), path, "--plaquette",
                                              "0.25"))[2][0][2], "0.25")

    def test_other_text_is_kept(self):
        """lime keeps comments, white space, attributes, quotes, entities, prefixes, line ends."""
        before = (
            "\ufeff<?xml version='1.0' encoding='utf-8' standalone='yes'?>\r\n"
            "<!-- a <dataLFN>x</dataLFN> --><?do not?>\r\n"
            f"<q:gaugeConfiguration  xmlns:q='{SPACE}'  xmlns:o='urn:o' a = \"1&#38;2\">\r\n"
            "<q:dataLFN\n  o:x='>'\t/ >".replace("/ >", "/>") +
            "<o:precision>not this</o:precision><precision>nor this</precision>"
            "<q:note>\u00e4 &lt; &amp; <![CDATA[ <q:precision>x</q:precision> ]]></q:note>"
            "<q:precision> <!-- fill --> single <?x y?></q:precision >"
            "<q:markovSequence><q:dataLFN>not this</q:dataLFN>"
            "<q:markovStep><q:update>1</q:update><q:record>"
            "<q:avePlaquette>1<![CDATA[.]]>0</q:avePlaquette>\n\n"
            "<q:crcCheckSum/><q:field>\n\t</q:field></q:record></q:markovStep>"
            "</q:markovSequence><o:record><o:field/></o:record></q:gaugeConfiguration>\r\n<!--z-->")
        out = self.fill(before.encode(), self.conf(lfn="lfn://a/b&c"))
        want = (before.replace("\t/>", "\t>lfn://a/b&amp;c</q:dataLFN>")
                .replace(" <!-- fill --> single <?x y?>", "double")
                .replace("1<![CDATA[.]]>0", "0.588")
                .replace("<q:crcCheckSum/>", f"<q:crcCheckSum>{cksum(self.DATA)}</q:crcCheckSum>")
                .replace(">\n\t</q:field>", ">su3gauge</q:field>"))
        self.assertEqual(out.decode(), want)

    def test_latin(self):
        head = "<?xml version='1.0' encoding='ISO-8859-1'?>\n<!--\u00e4-->"
        text = document([record()], head=head)
        out = self.fill(text.encode("latin-1"), self.conf())
        self.assertIn("<!--\u00e4-->".encode("latin-1"), out)
        self.assertEqual(values(out)[1], "double")

    def test_out(self):
        template, path = self.put("t.xml", document([record()])), self.conf()
        out = os.path.join(self.tempdir(), "out.xml")
        self.assertEqual(self.qcdml("--template", template, "--out", out, path), b"")
        with open(out, "rb") as file:
            self.assertEqual(values(file.read())[1], "double")
        self.qcdml("--template", template, "--out", "/nonexistent/o.xml", path, status=1)
        self.assertIn("/nonexistent/o.xml: create: ", self.err)

    def test_several_configurations(self):
        """Two steps, the first with two fields; each has its own sum and plaquette."""
        phase = random.Random(3).randbytes(32 * 16)
        single = scidac.field(DIMS, 288, seed=4)
        form = scidac.ildg_format(DIMS, 32)
        path = self.conf(
            [("ildg-format", form.replace(b"su3gauge", b"u1phase")), ("ildg-binary-data", phase)],
            [xlf("0.61")], [("ildg-format", form), ("ildg-binary-data", single)])
        text = document([record(), record()], [record()])
        self.fill(text, path, status=1)
        self.assertIn("record 7: plaquette unknown; give it with --plaquette", self.err)
        out = self.fill(text, path, "--plaquette", "0.1,2e-1,0.3")
        self.assertEqual(values(out), ("lfn://ldg/etm/b1/0042", "mixed", [
            ("su3gauge", str(cksum(self.DATA)), "0.1"), ("u1phase", str(cksum(phase)), "2e-1"),
            ("su3gauge", str(cksum(single)), "0.3")]))
        for option in ("0.1", "0.1,0.2", "0.1,0.2,0.3,0.4", "0.1,,0.3", "0.1,nan,0.3", "x", "",
                       "0.1,0.2,0.3,"):
            self.fill(text, path, "--plaquette", option, status=2)
            self.assertIn("--plaquette", self.err)
        for steps in ([[record()]], [[record()]] * 4):
            self.fill(document(*steps), path, "--plaquette", "0.1,0.2,0.3", status=1)
            self.assertIn("for 3 ildg-binary-data in", self.err)

    def test_sources_of_plaquettes(self):
        usqcd = ("scidac-record-xml", b"<usqcdInfo><version>1.0</version><plaq>0.57</plaq>"
                 b"<linktr>0.1</linktr></usqcdInfo>\0")
        message = scidac.records(DIMS, self.DATA)
        lfn = ("ildg-data-lfn", b"lfn://a")
        for items, want in (
                ([[lfn], [usqcd] + message], "0.57"), ([[lfn], message + [xlf("0.6")]], "0.6"),
                ([[lfn], [xlf("-1.5e-3")], message], "-1.5e-3"),
                ([[lfn], [xlf("0.1")], [xlf("0.2")], message], "0.2"),
                ([[lfn], [("xlf-info", b"time = 1, plaquette=0.7, x = 1")], message], "0.7"),
                ([[lfn], [("xlf-info", b"myplaquette = 1\nrectangle plaquette = 2")], message],
                 None),
                ([[lfn], [xlf("nan")], message], None), ([[lfn], [xlf("0x1")], message], None),
                ([[lfn], [xlf("1" * 60)], message], None), ([[lfn], [xlf("")], message], None),
                ([[lfn], message, [xlf("0.6")]], None),
                ([[lfn], [("scidac-record-xml", b"<usqcdInfo><plaq>x</plaq></usqcdInfo>")] +
                  message], None)):
            path = self.write("p.lime", container(items))
            out = self.fill(document([record()]), path, status=0 if want else 1)
            if want:
                self.assertEqual(values(out)[2][0][2], want, items)
            else:
                self.assertIn("plaquette unknown", self.err)

    def test_names(self):
        two = [("ildg-data-lfn", b"lfn://other")]
        text = document([record()])
        self.assertEqual(values(self.fill(text, self.conf(), "--lfn", "lfn://mine"))[0],
                         "lfn://mine")
        self.fill(text, self.conf(two), status=1)
        self.assertIn("several ildg-data-lfn; give the logical file name", self.err)
        self.fill(text, self.conf(lfn=None), status=1)
        self.assertIn("no ildg-data-lfn; give the logical file name", self.err)
        named = document([record()], lfn="lfn://kept")
        self.assertEqual(values(self.fill(named, self.conf(lfn=None)))[0], "lfn://kept")
        for bad in ("", "no", "lfn://a b", "lfn://\u00e4", "lfn://a\n"):
            self.fill(text, self.conf(lfn=None), "--lfn", bad, status=1)
            self.assertIn("is not a logical file name", self.err)

    def test_missing_elements(self):
        path = self.conf()
        text = document([record()])
        for name in ("dataLFN", "precision", "field", "crcCheckSum", "avePlaquette"):
            cut = re.sub(f" *<{name}></{name}>\n", "", text)
            self.assertNotEqual(cut, text)
            self.fill(cut, path, status=1)
            self.assertIn(f"no <{name}>; add an empty one", self.err)
        undescribed = self.write("u.lime", container([("ildg-binary-data", b"x" * 64)]))
        self.fill(text, undescribed, "--lfn", "lfn://a", "--plaquette", "1", status=1)
        self.assertIn("has no ildg-format", self.err)
        self.fill(text, self.write("n.lime", container([("x", b"")])), status=1)
        self.assertIn("no ILDG configuration", self.err)
        self.fill(text, self.put("no.lime", "no container at all, but long enough for one"),
                  status=2)
        with open(path, "rb") as file:
            whole = file.read()
        self.fill(text, self.write("cut.lime", whole[:-600]), status=1)

    def test_many(self):
        """--suffix writes a document for each file; --json prints the values, also of a tree."""
        top = os.path.dirname(self.conf(name="conf.2"))
        os.rename(self.conf(name="other", plaquette="0.5", lfn=None), top + "/conf.10")
        limetest.put(top + "/notes", b"text" * 99)
        template = self.put("t.xml", document([record()]))
        *shown, total = limetest.json_lines(self.qcdml("--json", "-r", top))
        self.assertEqual([(os.path.basename(one["file"]), one["dataLFN"],
                           one["records"][0]["avePlaquette"]) for one in shown],
                         [("conf.2", "lfn://ldg/etm/b1/0042", "0.588"), ("conf.10", None, "0.5")])
        self.assertEqual((total["summary"]["good"], total["summary"]["skipped"]), (2, 1))
        args = ["--template", template, "--suffix", ".xml", "--lfn", "lfn://x"]
        self.assertIn(b"3 files: 2 good", self.qcdml(*args, "-r", top))
        for path in "conf.2", "conf.10":
            got = values(limetest.read(f"{top}/{path}.xml"))
            self.assertEqual(got[0], "lfn://x")
        self.qcdml(*args, f"{top}/conf.2", f"{top}/conf.10", status=1)  # they exist
        self.qcdml(*args, "-f", f"{top}/conf.2", f"{top}/conf.10")
        self.qcdml("--template", template, "--out", f"{top}/o", "-r", top, status=2)
        # With -f, no document replaces a configuration.
        before = limetest.read(f"{top}/conf.10")
        self.qcdml("--template", template, "--suffix", "0", "-f",
                   os.path.join(top, shutil.copy(f"{top}/conf.2", f"{top}/conf.1")), status=1)
        self.assertEqual(limetest.read(f"{top}/conf.10"), before)

    def test_usage(self):
        path, template = self.conf(), self.put("t.xml", document([record()]))
        for args in ([], ["--template", template], ["--template", template, path, path],
                     ["--template", template, "-j", "0", path], ["--what", path]):
            self.qcdml(*args, status=2)
        self.qcdml("--template", "/nonexistent.xml", path, status=2)
        self.qcdml("--template", self.tempdir(), path, status=2)
        self.qcdml("--template", template, "/nonexistent", status=2)
        self.qcdml("--template", template, "--schema", "/nonexistent.xsd", path, status=1 + 1)
        self.assertIn("Usage: lime qcdml", self.qcdml("--help").decode())


class Schema(QcdmlCase):
    def validate(self, text, schema=SCHEMA, status=0, path=None):
        xsd = self.put("x.xsd", schema)
        return self.fill(text, path or self.conf(), "--schema", xsd, status=status)

    def test_valid(self):
        self.assertEqual(values(self.validate(document([record()])))[1], "double")
        self.assertEqual(self.err, "")

    def test_not_valid(self):
        for damage, line, element in (
                (lambda t: t.replace("<update>400", "<update>x"), 7, "update"),
                (lambda t: t.replace("<markovSequence>", "<note/><markovSequence>"), 5, "note"),
                (lambda t: t.replace("</record>", "<x xmlns=''/></record>"), 12, "x")):
            out = self.validate(damage(document([record()])), status=1)
            self.assertEqual(out, b"")
            self.assertRegex(self.err, rf"lime: .*t\.xml: line {line}: .*{element}")
            self.assertIn("not valid by the schema", self.err)
        # Invalid by the filled-in values, with an output that must not change.
        so = self.write("so.lime", container(
            [[xlf("0.5")], [("ildg-data-lfn", b"lfn://a"), ("ildg-format", scidac.ildg_format(
                DIMS).replace(b"su3", b"so3")), ("ildg-binary-data", b"x" * 320)]]))
        out = self.put("o.xml", "as it was")
        template = self.put("t.xml", document([record()]))
        self.qcdml("--template", template, "--schema", self.put("x.xsd", SCHEMA), "-f",
                   "--out", out,
                   so, status=1)
        self.assertRegex(self.err, r"o\.xml: line 9: .*so3gauge")
        with open(out, "rb") as file:
            self.assertEqual(file.read(), b"as it was")

    def test_unusable_schema(self):
        for schema in ("", "no XML", "<a/>", SCHEMA[:400], SCHEMA.replace("s:anyURI", "s:none")):
            self.assertEqual(self.validate(document([record()]), schema, status=1), b"")
            self.assertIn("not a usable schema", self.err)

    def test_nothing_is_fetched(self):
        """lime opens no file that a schema includes or a document names: a FIFO would block it."""
        fifo = os.path.join(self.tempdir(), "fifo")
        os.mkfifo(fifo)
        for place in (f"file://{fifo}", fifo, "http://127.0.0.1:1/x.xsd", "ftp://127.0.0.1:1/x"):
            for what in (f'<s:include schemaLocation="{place}"/>',
                         f'<s:import namespace="urn:x" schemaLocation="{place}"/>',
                         f'<s:redefine schemaLocation="{place}"/>'):
                schema = SCHEMA.replace('"qualified">', f'"qualified">{what}', 1)
                self.validate(document([record()]), schema, status=1)
                self.assertIn("it must be complete in one file", self.err)
            text = document([record()]).replace("<gaugeConfiguration", (
                '<gaugeConfiguration xmlns:i="http://www.w3.org/2001/XMLSchema-instance" '
                f'i:schemaLocation="{SPACE} {place} urn:x {place}" '
                f'i:noNamespaceSchemaLocation="{place}"'))
            self.validate(text, status=0)

    def test_hostile_schema(self):
        laughs = ("<!DOCTYPE s [<!ENTITY a 'ha'>" + "".join(
            f"<!ENTITY {chr(98 + i)} '{f'&{chr(97 + i)};' * 10}'>" for i in range(12)) + "]>")
        for head in (laughs, "<!DOCTYPE s SYSTEM 'file:///etc/passwd'>"):
            schema = SCHEMA.replace("?>\n", "?>" + head, 1)
            self.assertEqual(self.validate(document([record()]), schema, status=1), b"")
            self.assertIn("schema: a document type declaration (DOCTYPE) is not allowed", self.err)
        self.validate(document([record()]), "<a>" * 100000 + "</a>" * 100000, status=1)
        self.validate(document([record()]), SCHEMA + " " * (4 << 20), status=2)


class Hostile(QcdmlCase):
    def refuse(self, text, *messages, status=1):
        path = self.conf()
        for command in (self.fill, self.check):
            command(text, path, status=status)
            for word in messages:
                self.assertIn(word, self.err)

    def test_document_types(self):
        laughs = ("<!DOCTYPE s [<!ENTITY a 'ha'>" + "".join(
            f"<!ENTITY {chr(98 + i)} '{f'&{chr(97 + i)};' * 10}'>" for i in range(12)) + "]>\n")
        for kind in (laughs, "<!DOCTYPE g SYSTEM 'http://127.0.0.1:1/x.dtd'>\n",
                     "<!DOCTYPE g [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>\n",
                     "<!DOCTYPE g [<!ENTITY % x SYSTEM 'file:///etc/passwd'> %x;]>\n",
                     "<!DOCTYPE g>\n"):
            text = document([record("&m;", "&x;")], head='<?xml version="1.0"?>' + kind)
            self.refuse(text, "a document type declaration (DOCTYPE) is not allowed", "line 1: ")

    def test_too_much(self):
        text = document([record()])
        deep = "<x>" * 5000 + "</x>" * 5000
        self.refuse(text.replace("<record>", deep + "<record>"), "nested more than 64 deep")
        many = "<x/>" * 250000
        self.refuse(text.replace("<record>", many + "<record>"), "more than 200000 elements")
        self.refuse(text + " " * (4 << 20), "larger than 4194304 bytes", status=2)
        self.refuse(text.replace("<field>", "<field>" + "x" * 2000), "a value exceeds 1023")
        self.refuse(document(*[[record()]] * 20000, lfn="lfn://a"))

    def test_no_such_document(self):
        text = document([record()])
        for bad in ("", "no XML", text[:-20], text + "<more/>", text.replace("</record>", "", 1),
                    "\0" * 100, text.replace("\n", "\n\0", 1), "<a/>",
                    text.replace(SPACE, "http://www.lqcd.org/ildg/QCDml/config1.3"),
                    text.replace(f' xmlns="{SPACE}"', ""),
                    text.replace("gaugeConfiguration", "markovChain"),
                    text.replace("<dataLFN>", "<dataLFN/><dataLFN>"),
                    text.replace("<field>", "<field><b/>"), text.encode("utf-16"),
                    text.encode("utf-16-le"), text.encode("utf-32"),
                    text.replace('"1.0"?', '"1.0" encoding="EBCDIC-US"?'),
                    text.replace('"1.0"?', '"1.0" encoding="UTF-16"?'),
                    text.encode().replace(b"<field>", b"<field>\xff\xfe"),
                    text.replace("<field>", "<field>&nothing;")):
            self.refuse(bad, "line ")

    def test_terminal(self):
        """lime replaces control characters of a document when it prints them."""
        self.check(document([record("\u009b31m\u202e", "1\u007f2")]), self.conf(), status=1)
        self.assertFalse(re.search("[\u0080-\u009f\u202e\u007f]", self.out + self.err))
        bad = document([record()]).replace("<precision>", "<precision><\u202ex/>")
        self.check(bad, self.conf(), status=1)
        self.assertNotIn("\u202e", self.err)

    def test_mutations(self):
        """Every damaged document ends in an exit status within the test's time limit."""
        dice = random.Random(9)
        good = document([record("su3gauge", "1", "1")], lfn="lfn://a", precision="double").encode()
        path = self.conf()
        for _ in range(2000 if limetest.STRESS else 60):
            text = bytearray(good)
            for _ in range(dice.randrange(1, 4)):
                at = dice.randrange(len(text))
                text[at:at + dice.randrange(3)] = dice.randbytes(dice.randrange(3))
            template = self.put("m.xml", bytes(text))
            done = run(["lime", "qcdml", "--template", template, path])
            self.assertIn(done.returncode, (0, 1, 2), done)
            if done.returncode == 0:
                self.assertEqual(values(done.stdout)[1], "double")


def nersc(data, rows=3):
    """Returns the sum of 32-bit messages of the first rows of each link, in either precision."""
    words = struct.unpack(f">{len(data) // 4}I", data)
    row = len(data) // 32 // 4 // 3 // 4  # 32 sites of four links
    return sum(w for i, w in enumerate(words) if i // row % 3 < rows) % 2**32


class Check(QcdmlCase):
    def good(self, crc=None, plaquette="0.588", **kw):
        return document([record(kw.pop("field", "su3gauge"),
                                cksum(self.DATA) if crc is None else crc, plaquette)],
                        **{"lfn": "lfn://ldg/etm/b1/0042", "precision": "double", **kw})

    def test_agrees(self):
        path = self.conf()
        crc = cksum(self.DATA)
        for form in (str(crc), f"{crc:x}", f"{crc:08X}", f"0x{crc:x}", f" {crc}\n"):
            doc = self.check(self.good(form), path)
            self.assertIn(f"{doc}: agrees with {path}: 1 record\n", self.out)
            self.assertEqual(self.err, "")
        self.check(self.good(plaquette="5.880001e-1"), path)
        self.check(self.good(plaquette="0.59"), path)  # compared with its number of digits
        self.check(self.good(), self.conf(plaquette=None))
        self.check(self.good(lfn="lfn://any"), self.conf(lfn=None))
        self.check(self.good(), self.conf([("ildg-data-lfn", b"lfn://other")]))

    def test_differs(self):
        path = self.conf()
        for text, message in (
                (self.good(lfn="lfn://other"),
                 "line 3: dataLFN lfn://other, not lfn://ldg/etm/b1/0042: the container has"),
                (self.good(precision="single"), "line 4: precision single, not double: "),
                (self.good(field="su2gauge"), "line 9: record 3: field su2gauge, not su3gauge: "),
                (self.good(plaquette="0.5895"), "avePlaquette 0.5895, not 0.588: as in xlf-info"),
                (self.good(plaquette="much"), "avePlaquette much, not 0.588: not a number"),
                (self.good(crc="12345z"), "crcCheckSum 12345z, not"),
                (self.good(crc=""), "not a 32-bit number"),
                (self.good().replace("precision>", "x>"), "precision: missing"),
                (self.good().replace("crcCheckSum>", "x>"), "record 3: crcCheckSum: missing"),
                (document([record()], [record()]), "records 2, not 1: ")):
            doc = self.check(text, path, status=1)
            self.assertIn(f"lime: {doc}: ", self.err)
            self.assertIn(message, self.err)
            self.assertRegex(self.out, rf"{doc}: \d difference")
            self.check(text, path, "-q", status=1)
            self.assertIn(message, self.err)

    def test_other_sums(self):
        """Another checksum is a warning if the data are intact; damage is an error."""
        path = self.conf()
        for sum, message in ((nersc(self.DATA), "NERSC"), (nersc(self.DATA, 2), "NERSC"),
                             (f"{nersc(self.DATA):x}", "NERSC"), (12345, "match their SciDAC")):
            doc = self.check(self.good(sum), path)
            self.assertIn("warning: crcCheckSum", self.err)
            self.assertIn(message, self.err)
            self.assertIn(f"{doc}: agrees with {path}: 1 record; 1 warning\n", self.out)
            self.check(self.good(sum), path, "--strict", status=1)
        with open(path, "rb") as file:
            whole = file.read()
        at = whole.index(self.DATA) + 77
        damaged = self.write("damaged.lime", whole[:at] + b"\xff\xff" + whole[at + 2:])
        self.check(self.good(), damaged, status=1)
        self.assertIn("the data differ from those of the document", self.err)
        plain = self.write("plain.lime", container(
            [[xlf("0.588")], scidac.records(DIMS, self.DATA)[:2]]))
        self.check(self.good(12345), plain, status=1)
        self.check(self.good(nersc(self.DATA)), plain)

    def test_json(self):
        path = self.conf()
        doc = self.check(self.good(crc=5, precision="mixed"), path, "--json", status=1)
        report = json.loads(self.out)
        self.assertEqual(self.err, "")
        self.assertEqual((report["status"], report["error"]),
                         ("bad", "differs from its QCDml document"))
        qcdml = report["qcdml"]
        self.assertEqual({k: qcdml[k] for k in qcdml if k != "found"},
                         {"file": doc, "records": 1, "differences": 1, "warnings": 1,
                          "status": "bad"})
        self.assertEqual(qcdml["found"], [
            {"warning": False, "what": "precision", "document": "mixed", "container": "double",
             "why": "the data have another precision", "line": 4, "ordinal": None},
            {"warning": True, "what": "crcCheckSum", "document": "5",
             "container": str(cksum(self.DATA)), "line": 10, "ordinal": 3,
             "why": "not the data's cksum, but the data match their SciDAC checksum"}])
        self.check("no XML", path, "--json", status=1)
        self.assertEqual(json.loads(self.out)["qcdml"]["status"], "unreadable")
        self.check(self.good(), "/nonexistent", "--json", status=2)
        self.assertEqual(json.loads(self.out)["status"], "unreadable")
        self.check(self.good(), path, "--json", "--data")
        self.assertEqual(json.loads(self.out)["qcdml"]["status"], "good")

    def test_usage(self):
        path = self.conf()
        self.check(self.good(), path, path, status=2)
        self.check(self.good(), path, "-r", status=2)
        self.check(self.good(), "/nonexistent", status=2)
        done = run(["lime", "check", "--qcdml", "/nonexistent.xml", path])
        self.assertEqual(done.returncode, 2)

    @limetest.needs_fuse
    def test_mounted(self):
        path = self.conf()
        with limetest.Mount(path) as mount:
            self.check(self.good(), mount.path)
            self.check(self.good(plaquette="0.1"), mount.path, status=1)
            out = self.fill(document([record()]), mount.path)
            self.assertEqual(values(out)[2][0][1], str(cksum(self.DATA)))


if __name__ == "__main__":
    limetest.main()
